import type { Interval } from "@octavo/statistics";
import type { OutputKind } from "../evaluators/evaluator.js";

/** What came of an evaluation, in figures alone. */
export interface EvaluationSummary {
  /** False while rows are still to come, or where the rows were not all read. */
  readonly isComplete: boolean;
  /** Whether the figures can be relied on: a broken judge says nothing about the model. */
  readonly status: EvaluatorStatus;
  readonly numCases: number;
  /** Answers that never came, by the code of the failure. Their samples are skipped by every evaluator. */
  readonly answerFailures: readonly Counted[];
  readonly evaluators: readonly EvaluatorResult[];
  readonly confidence: number;
  readonly maxFailureRate: number;
  /** What limits the figures, such as tags that were too many. */
  readonly notes: readonly string[];
}

/** More of the scores failed than `maxFailureRate` allows: of one that asks a judge, or of one that does not. */
export type EvaluatorStatus = "ok" | "judge_broken" | "evaluator_broken";

/** What an evaluator said over a run, with confidence intervals. */
export interface EvaluatorResult extends SliceSummary {
  readonly name: string;
  readonly output: OutputKind;
  readonly needsJudge: boolean;
  readonly status: EvaluatorStatus;
  /** By the code of the failure, most often first. */
  readonly failures: readonly Counted[];
  /** In the order in which the tags were met. */
  readonly tags: readonly TagSummary[];
}

/** Scores of the cases with one tag. */
export interface TagSummary extends SliceSummary {
  readonly tag: string;
}

/** Results over the cases of a slice. */
export interface SliceSummary {
  readonly numScored: number;
  readonly numPassed: number;
  readonly numSkipped: number;
  readonly numFailed: number;
  /** Mean of the values; undefined if nothing was scored. */
  readonly mean: number | undefined;
  /** Undefined with fewer than eight clusters, or where all of them are alike. */
  readonly meanInterval: Interval | undefined;
  readonly passRate: number | undefined;
  readonly passRateInterval: Interval | undefined;
  readonly labels: readonly Counted[];
}

/** A name, and how often it occurred. */
export interface Counted {
  readonly name: string;
  readonly count: number;
}
