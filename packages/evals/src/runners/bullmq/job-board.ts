import { whenAborted } from "@octavo/protocol/abort";
import { OctavoError } from "@octavo/protocol";
import type { Queue, QueueEvents } from "bullmq";
import type { Redis } from "ioredis";
import type { Score } from "../../evaluators/evaluator.js";
import { isScore, type ScoringTask } from "../scoring-task.js";
import { connectRedis, defaultQueueName, loadBullMq } from "./connection.js";
import type { BullMqConnection } from "./queue-address.js";

interface JobBoardOptions extends BullMqConnection {
  readonly keepResultsSeconds: number;
  readonly lookUpMs: number;
  readonly noWorkerTimeoutMs: number;
}

/** A job whose result is awaited. */
interface Awaited {
  readonly task: ScoringTask;
  /** More than one where a run has the same pair twice. */
  readonly waiters: Waiter[];
  /** When it last reported. */
  heardAtMs: number;
}

interface Waiter {
  readonly resolve: (score: Score) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Jobs that are put on a queue, and their results. Events of the queue are what is usually heard of them; since streams of
 * events are trimmed and Redis may lose its memory, jobs that nothing was heard of are looked up, and put there again when
 * they are gone.
 */
export class JobBoard {
  readonly #options: JobBoardOptions;
  readonly #redis: Redis;
  readonly #queue: Queue;
  readonly #events: QueueEvents;
  readonly #awaited = new Map<string, Awaited>();
  #unsent = new Map<string, ScoringTask>();
  #sending: Promise<void> | undefined;
  readonly #removing = new Set<Promise<unknown>>();
  #lookingUp: NodeJS.Timeout | undefined;
  #workersSeenAtMs = Date.now();

  private constructor(options: JobBoardOptions, redis: Redis, queue: Queue, events: QueueEvents) {
    this.#options = options;
    this.#redis = redis;
    this.#queue = queue;
    this.#events = events;
    queue.on("error", () => undefined);
    events.on("error", () => undefined);
    events.on("completed", ({ jobId, returnvalue }) => this.#finish(jobId, returnvalue));
    events.on("failed", ({ jobId, failedReason }) => this.#finish(jobId, gaveUp(failedReason)));
    // it was there before: its result may be as well
    events.on("duplicated", ({ jobId }) => void this.#lookUp([jobId]));
  }

  /** @throws OctavoError `runner_unavailable` when Redis does not answer */
  static async open(options: JobBoardOptions): Promise<JobBoard> {
    const { bullmq, Redis: RedisClient } = await loadBullMq();
    const redis = await connectRedis(RedisClient, options);
    const [seconds = 0, microseconds = 0] = await redis.time();
    const name = options.queueName ?? defaultQueueName;
    const shared = { connection: redis, ...(options.prefix !== undefined && { prefix: options.prefix }) };
    const queue = new bullmq.Queue(name, shared);
    // from now on by Redis's own clock: nothing that is put there after this is missed
    const lastEventId = `${seconds * 1000 + Math.floor(microseconds / 1000)}-0`;
    const events = new bullmq.QueueEvents(name, { ...shared, lastEventId });
    await Promise.all([queue.waitUntilReady(), events.waitUntilReady()]);
    return new JobBoard(options, redis, queue, events);
  }

  /** The score of a task. Rejects with the signal's reason; the job is then removed if it has not started. */
  async perform(jobId: string, task: ScoringTask, signal: AbortSignal): Promise<Score> {
    signal.throwIfAborted();
    let own: Waiter | undefined;
    const result = new Promise<Score>((resolve, reject) => {
      own = { resolve, reject };
      this.#wait(jobId, task, own);
    });
    const forget = whenAborted(signal, () => {
      if (own !== undefined) this.#leave(jobId, own);
      own?.reject(signal.reason);
    });
    try {
      return await result;
    } finally {
      forget();
    }
  }

  /** Takes a result that was read out of Redis. */
  forget(jobId: string): void {
    if (this.#awaited.has(jobId)) return;
    this.#track(this.#queue.remove(jobId));
  }

  /** Resolves when what was forgotten is gone. */
  async settle(): Promise<void> {
    await Promise.all(this.#removing);
  }

  async close(): Promise<void> {
    clearTimeout(this.#lookingUp);
    this.#failAll(new OctavoError("runner_unavailable", "the runner was closed"));
    // commands to a Redis that is away would wait for it
    if (this.#redis.status === "ready") {
      await this.settle();
      await this.#sending;
    }
    await this.#events.close();
    await this.#queue.close();
    this.#redis.disconnect();
  }

  #wait(jobId: string, task: ScoringTask, waiter: Waiter): void {
    const known = this.#awaited.get(jobId);
    if (known !== undefined) {
      known.waiters.push(waiter);
      return;
    }
    if (this.#awaited.size === 0) this.#workersSeenAtMs = Date.now();
    this.#awaited.set(jobId, { task, waiters: [waiter], heardAtMs: Date.now() });
    this.#send(jobId, task);
    this.#lookUpSoon();
  }

  #leave(jobId: string, waiter: Waiter): void {
    const awaited = this.#awaited.get(jobId);
    const at = awaited?.waiters.indexOf(waiter) ?? -1;
    if (awaited === undefined || at === -1) return;
    awaited.waiters.splice(at, 1);
    if (awaited.waiters.length > 0) return;
    this.#awaited.delete(jobId);
    if (!this.#unsent.delete(jobId)) this.#track(this.#takeBack(jobId));
  }

  /** What no worker has begun is not begun; what is finished stays for the next run. */
  async #takeBack(jobId: string): Promise<void> {
    const state = await this.#queue.getJobState(jobId);
    if (state === "waiting" && !this.#awaited.has(jobId)) await this.#queue.remove(jobId);
  }

  #track(removing: Promise<unknown>): void {
    const tracked = removing.catch(() => undefined).finally(() => this.#removing.delete(tracked));
    this.#removing.add(tracked);
  }

  /** Jobs of one turn of the event loop go together. */
  #send(jobId: string, task: ScoringTask): void {
    this.#unsent.set(jobId, task);
    this.#sending ??= this.#sendAll();
  }

  async #sendAll(): Promise<void> {
    await new Promise(setImmediate);
    try {
      while (this.#unsent.size > 0) {
        const batch = this.#unsent;
        this.#unsent = new Map();
        await this.#settleBefore(batch);
        await this.#queue.addBulk(
          Array.from(batch, ([jobId, data]) => ({
            name: data.spec.name,
            data,
            opts: {
              jobId,
              attempts: 1,
              // results are kept until read, at most for the retention time
              removeOnComplete: { age: this.#options.keepResultsSeconds },
              removeOnFail: { age: this.#options.keepResultsSeconds },
            },
          })),
        );
      }
    } catch (thrown) {
      this.#failAll(unavailable(thrown));
    } finally {
      this.#sending = undefined;
    }
  }

  /** A job that is being taken away must be gone before it is put there again. */
  async #settleBefore(batch: ReadonlyMap<string, ScoringTask>): Promise<void> {
    if (batch.size > 0 && this.#removing.size > 0) await this.settle();
  }

  #finish(jobId: string, result: unknown): void {
    const awaited = this.#awaited.get(jobId);
    if (awaited === undefined) return;
    this.#awaited.delete(jobId);
    this.#workersSeenAtMs = Date.now();
    const score = isScore(result) ? (result as Score) : gaveUp("a worker answered what is no score");
    for (const waiter of awaited.waiters) waiter.resolve(score);
  }

  #failAll(error: OctavoError): void {
    const all = [...this.#awaited.values()];
    this.#awaited.clear();
    this.#unsent.clear();
    for (const { waiters } of all) for (const waiter of waiters) waiter.reject(error);
  }

  #lookUpSoon(): void {
    this.#lookingUp ??= setTimeout(() => void this.#lookUpSilent(), this.#options.lookUpMs).unref();
  }

  async #lookUpSilent(): Promise<void> {
    try {
      const before = Date.now() - this.#options.lookUpMs;
      const silent = [...this.#awaited].filter(([, { heardAtMs }]) => heardAtMs <= before);
      await this.#lookUp(silent.map(([jobId]) => jobId));
      if (silent.length > 0) await this.#checkWorkers();
    } catch (thrown) {
      this.#failAll(unavailable(thrown));
    } finally {
      this.#lookingUp = undefined;
      if (this.#awaited.size > 0) this.#lookUpSoon();
    }
  }

  async #lookUp(jobIds: readonly string[]): Promise<void> {
    for (const jobId of jobIds) {
      const awaited = this.#awaited.get(jobId);
      if (awaited === undefined || this.#unsent.has(jobId)) continue;
      awaited.heardAtMs = Date.now();
      try {
        const state = await this.#queue.getJobState(jobId);
        if (state === "unknown") {
          if (this.#awaited.get(jobId) === awaited) this.#send(jobId, awaited.task);
        } else if (state === "completed" || state === "failed") {
          const job = await this.#queue.getJob(jobId);
          if (job === undefined) continue;
          this.#finish(jobId, state === "completed" ? job.returnvalue : gaveUp(job.failedReason));
        }
      } catch {
        // Redis is away: the next look finds it, or not
        return;
      }
    }
  }

  async #checkWorkers(): Promise<void> {
    const now = Date.now();
    if ((await this.#queue.getWorkersCount()) > 0) {
      this.#workersSeenAtMs = now;
      return;
    }
    const waitedMs = now - this.#workersSeenAtMs;
    if (waitedMs < this.#options.noWorkerTimeoutMs) return;
    this.#failAll(
      new OctavoError(
        "runner_unavailable",
        `the queue ${this.#queue.name} has had no worker for ${Math.round(waitedMs / 1000)} s; start one`,
      ),
    );
  }
}

/** The score of a pair that BullMQ gave up on: its worker threw, or crashed on it more than once. */
function gaveUp(reason: string): Score {
  return { status: "failed", code: "runner_unavailable", reason };
}

function unavailable(thrown: unknown): OctavoError {
  if (thrown instanceof OctavoError) return thrown;
  const { message } = OctavoError.from(thrown);
  return new OctavoError("runner_unavailable", `the queue failed: ${message}`, { cause: thrown });
}
