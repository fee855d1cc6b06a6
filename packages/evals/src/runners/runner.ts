import type { Evaluator, Sample, Score } from "../evaluators/evaluator.js";

/** One evaluator's score of one sample. */
export interface ScoredCase {
  readonly caseId: string;
  readonly evaluator: string;
  readonly score: Score;
}

/** How far a runner is, in pairs of case and evaluator. */
export interface RunnerProgress {
  readonly done: number;
  readonly failed: number;
  readonly total: number | undefined;
}

/** How one run of a runner goes. */
export interface RunOptions {
  readonly signal: AbortSignal;
  readonly onProgress?: (progress: RunnerProgress) => void;
  /** The caller says with `acknowledge` when the rows that it read are on disk; until then a runner that keeps results keeps them. */
  readonly untilAcknowledged?: boolean;
}

/**
 * Applies evaluators to samples, somewhere: in this process, on worker threads, on the workers of a queue, on a cluster.
 * Every pair of sample and evaluator is scored exactly once in what is yielded, in any order. The same conformance suite
 * holds for every runner.
 */
export interface Runner {
  readonly name: string;
  run(
    samples: AsyncIterable<Sample> | Iterable<Sample>,
    evaluators: readonly Evaluator[],
    options: RunOptions,
  ): AsyncIterable<ScoredCase>;
  /** Only for runners that keep results elsewhere, such as in Redis: the rows that were read may be dropped. */
  acknowledge?(): Promise<void>;
  close(): Promise<void>;
}
