import type { Evaluator, Sample } from "../../evaluators/evaluator.js";
import { concurrently } from "../concurrently.js";
import { ContentKeys } from "../content-key.js";
import { concurrencyOf } from "../local-runner.js";
import { ProgressCount } from "../progress-count.js";
import type { RunOptions, Runner, ScoredCase } from "../runner.js";
import { pairsOf } from "../sample-streams.js";
import { scoringTask } from "../scoring-task.js";
import type { BullMqConnection } from "./queue-address.js";
import { JobBoard } from "./job-board.js";

/** A runner whose pairs of case and evaluator are jobs in Redis. */
export interface BullMqRunnerOptions extends BullMqConnection {
  /** Pairs that are in the queue or with workers at a time. Default 512, at most 4096. */
  readonly pairsInFlight?: number;
  /** How long results stay in Redis if this process dies before reading them. Default a day. */
  readonly keepResultsSeconds?: number;
  /** How often jobs that nothing was heard of are looked up. Default 5000. */
  readonly lookUpMs?: number;
  /** How long a run waits while the queue has no worker at all. Default 60,000. */
  readonly noWorkerTimeoutMs?: number;
}

/**
 * Scores on the workers of a BullMQ queue. A pair of sample and evaluator is one job, whose id is the hash of what decides
 * its score: putting it there again changes nothing, so a run that died is run again and finds what its workers finished
 * meanwhile. Workers that die lose their jobs to others, and a result counts the first time it is heard of: however often
 * a pair was delivered, it is scored once in what is yielded. Evaluators that are the same for the workers are needed: those
 * made from a spec.
 */
export class BullMqRunner implements Runner {
  readonly name = "bullmq";
  readonly #options: BullMqRunnerOptions;
  readonly #pairsInFlight: number;
  readonly #keys = new ContentKeys();
  /** Jobs whose rows were read by a caller that has not acknowledged them. */
  readonly #read: string[] = [];
  #board: Promise<JobBoard> | undefined;

  constructor(options: BullMqRunnerOptions) {
    this.#options = options;
    this.#pairsInFlight = concurrencyOf(options.pairsInFlight ?? 512);
  }

  async *run(
    samples: AsyncIterable<Sample> | Iterable<Sample>,
    evaluators: readonly Evaluator[],
    options: RunOptions,
  ): AsyncGenerator<ScoredCase, void, undefined> {
    options.signal.throwIfAborted();
    if (evaluators.length === 0) return;
    const board = await this.#open();
    const progress = new ProgressCount(options);
    const scored = concurrently(
      pairsOf(samples, evaluators),
      this.#pairsInFlight,
      async ([sample, evaluator], signal) => {
        const jobId = `score-${this.#keys.of(sample, evaluator)}`;
        const score = await board.perform(jobId, scoringTask(sample, evaluator, this.name), signal);
        return { jobId, row: { caseId: sample.case.id, evaluator: evaluator.name, score } };
      },
      options.signal,
    );
    for await (const { jobId, row } of scored) {
      progress.count(row);
      yield row;
      // only now: a result that its reader never got, or never wrote down, is still there for the next run
      if (options.untilAcknowledged === true) this.#read.push(jobId);
      else board.forget(jobId);
    }
    await board.settle();
  }

  async acknowledge(): Promise<void> {
    const jobIds = this.#read.splice(0);
    const board = await this.#board;
    if (board === undefined) return;
    for (const jobId of jobIds) board.forget(jobId);
    await board.settle();
  }

  async close(): Promise<void> {
    const board = this.#board;
    this.#board = undefined;
    if (board !== undefined) await (await board.catch(() => undefined))?.close();
  }

  async #open(): Promise<JobBoard> {
    this.#board ??= JobBoard.open({
      keepResultsSeconds: 24 * 3600,
      lookUpMs: 5000,
      noWorkerTimeoutMs: 60_000,
      ...this.#options,
    });
    try {
      return await this.#board;
    } catch (error) {
      this.#board = undefined;
      throw error;
    }
  }
}
