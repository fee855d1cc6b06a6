import { setMaxListeners } from "node:events";
import { OctavoError } from "@octavo/protocol";
import type { Worker } from "bullmq";
import type { Redis } from "ioredis";
import { concurrencyOf } from "../local-runner.js";
import { TaskScorer, type TaskScorerOptions } from "../task-scorer.js";
import { connectRedis, defaultQueueName, loadBullMq } from "./connection.js";
import type { BullMqConnection } from "./queue-address.js";

/**
 * Its runner stays the caller's to close. One that computes on threads leaves this one free: a worker that does not renew
 * the locks of its jobs in time loses them.
 */
export interface BullMqWorkerOptions extends BullMqConnection, TaskScorerOptions {
  /** Jobs at a time. Default 16. */
  readonly concurrency?: number;
  /** For how long a job is this worker's without being renewed: how long the jobs of a dead worker wait. Default 30,000. */
  readonly lockDurationMs?: number;
  /** How often jobs of dead workers are looked for. Default 15,000. */
  readonly stalledIntervalMs?: number;
}

/** Workers that a job may take down with it, before it is given up. */
const maxStalledCount = 3;

/** Takes jobs from the queue that a `BullMqRunner` fills. As many as one likes, on as many machines. */
export class BullMqWorker {
  readonly #worker: Worker;
  readonly #redis: Redis;
  readonly #closing: AbortController;

  private constructor(worker: Worker, redis: Redis, closing: AbortController) {
    this.#worker = worker;
    this.#redis = redis;
    this.#closing = closing;
  }

  /**
   * Resolves when it takes jobs.
   * @throws OctavoError `runner_unavailable` when Redis does not answer
   */
  static async start(options: BullMqWorkerOptions): Promise<BullMqWorker> {
    const { prefix } = options;
    const { bullmq, Redis: RedisClient } = await loadBullMq();
    const redis = await connectRedis(RedisClient, options);
    const scorer = new TaskScorer(options);
    const closing = new AbortController();
    // every job listens to it
    setMaxListeners(0, closing.signal);
    const worker = new bullmq.Worker(
      options.queueName ?? defaultQueueName,
      ({ data }: { readonly data: unknown }) => scorer.score(data, closing.signal),
      {
        connection: redis,
        concurrency: concurrencyOf(options.concurrency ?? 16),
        lockDuration: options.lockDurationMs ?? 30_000,
        stalledInterval: options.stalledIntervalMs ?? 15_000,
        maxStalledCount,
        ...(prefix !== undefined && { prefix }),
      },
    );
    // locks that could not be renewed, and breaks of the connection: the jobs are others' then
    worker.on("error", () => undefined);
    await worker.waitUntilReady();
    return new BullMqWorker(worker, redis, closing);
  }

  /** Takes no more jobs and finishes its own; with `force` it leaves them to others. */
  async close({ force = false } = {}): Promise<void> {
    if (force) this.#closing.abort(new OctavoError("shutting_down", "the worker was stopped"));
    await this.#worker.close(force);
    this.#redis.disconnect();
  }
}
