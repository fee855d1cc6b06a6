import { availableParallelism } from "node:os";
import { OctavoError } from "@octavo/protocol";
import type { Evaluator, EvaluatorSpec, Sample } from "../../evaluators/evaluator.js";
import { concurrently } from "../concurrently.js";
import { concurrencyOf } from "../in-process.js";
import { ProgressCount } from "../progress-count.js";
import type { RunOptions, Runner, ScoredCase } from "../runner.js";
import { batchesOf } from "../sample-streams.js";
import { scorePair } from "../score-pair.js";
import { EvaluatorThread } from "./evaluator-thread.js";

export interface WorkerThreadsOptions {
  /** Default: as many as the machine has cores, at most 8. */
  readonly threads?: number;
  /** Samples that a thread is sent at a time, for the messages' sake. Default 16. */
  readonly batchSize?: number;
  /** For one batch; what takes longer is stopped, and then tried pair by pair. Default 30 s. */
  readonly timeoutMs?: number;
  /** URLs of modules that export `evaluators`, rows of the user's own. */
  readonly modules?: readonly string[];
}

/**
 * Scores on threads, for evaluators that compute: evaluators that ask a judge, or that were not made from a spec, run here
 * beside them. A sample that kills its thread or never ends costs its own score and no other.
 */
export class WorkerThreadsRunner implements Runner {
  readonly name = "worker-threads";
  readonly #threads: readonly EvaluatorThread[];
  readonly #idle: EvaluatorThread[];
  readonly #batchSize: number;
  readonly #waiting: ((thread: EvaluatorThread) => void)[] = [];

  constructor(options: WorkerThreadsOptions = {}) {
    const { batchSize = 16, timeoutMs = 30_000, modules = [] } = options;
    const numThreads = concurrencyOf(options.threads ?? Math.min(8, availableParallelism()));
    this.#batchSize = concurrencyOf(batchSize);
    this.#threads = Array.from({ length: numThreads }, () => new EvaluatorThread({ modules }, timeoutMs));
    this.#idle = [...this.#threads];
  }

  async *run(
    samples: AsyncIterable<Sample> | Iterable<Sample>,
    evaluators: readonly Evaluator[],
    options: RunOptions,
  ): AsyncGenerator<ScoredCase, void, undefined> {
    const specs: EvaluatorSpec[] = [];
    const local: Evaluator[] = [];
    for (const evaluator of evaluators) {
      if (evaluator.spec === undefined || evaluator.needsJudge) local.push(evaluator);
      else specs.push(evaluator.spec);
    }
    if (evaluators.length === 0) return;
    const progress = new ProgressCount(options);
    const batches = concurrently(
      batchesOf(samples, this.#batchSize),
      // each thread finds its next batch waiting
      this.#threads.length * 2,
      async (batch, signal) => {
        const here = batch.flatMap((sample) => local.map((own) => scorePair(sample, own, signal)));
        const [there, ...rows] = await Promise.all([this.#scoreOnThread(batch, specs, signal), ...here]);
        return [...there, ...rows];
      },
      options.signal,
    );
    for await (const rows of batches) {
      for (const row of rows) {
        progress.count(row);
        yield row;
      }
    }
  }

  async close(): Promise<void> {
    await Promise.all(this.#threads.map((thread) => thread.close()));
  }

  async #scoreOnThread(
    samples: readonly Sample[],
    specs: readonly EvaluatorSpec[],
    signal: AbortSignal,
  ): Promise<readonly ScoredCase[]> {
    if (specs.length === 0) return [];
    const thread = await this.#take();
    try {
      return await thread.perform({ samples, specs }, signal);
    } catch (thrown) {
      signal.throwIfAborted();
      const error = OctavoError.from(thrown);
      if (error.code !== "deadline_exceeded" && error.code !== "runner_unavailable") throw error;
      return await this.#scoreApart(thread, samples, specs, error, signal);
    } finally {
      this.#give(thread);
    }
  }

  /** Finds the pair at fault, which fails, and scores the others. */
  async #scoreApart(
    thread: EvaluatorThread,
    samples: readonly Sample[],
    specs: readonly EvaluatorSpec[],
    error: OctavoError,
    signal: AbortSignal,
  ): Promise<readonly ScoredCase[]> {
    const [sample] = samples;
    const [spec] = specs;
    if (samples.length === 1 && specs.length === 1 && sample !== undefined && spec !== undefined) {
      const score = { status: "failed", code: error.code, reason: error.message } as const;
      return [{ caseId: sample.case.id, evaluator: spec.as ?? spec.name, score }];
    }
    const parts =
      samples.length > 1
        ? halves(samples).map((half) => ({ samples: half, specs }))
        : halves(specs).map((half) => ({ samples, specs: half }));
    const rows: ScoredCase[] = [];
    for (const part of parts) {
      try {
        rows.push(...(await thread.perform(part, signal)));
      } catch (thrown) {
        signal.throwIfAborted();
        rows.push(
          ...(await this.#scoreApart(thread, part.samples, part.specs, OctavoError.from(thrown), signal)),
        );
      }
    }
    return rows;
  }

  #take(): Promise<EvaluatorThread> {
    const thread = this.#idle.pop();
    return thread === undefined
      ? new Promise((resolve) => void this.#waiting.push(resolve))
      : Promise.resolve(thread);
  }

  #give(thread: EvaluatorThread): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#idle.push(thread);
    else next(thread);
  }
}

function halves<Item>(items: readonly Item[]): (readonly Item[])[] {
  const middle = Math.ceil(items.length / 2);
  return [items.slice(0, middle), items.slice(middle)];
}
