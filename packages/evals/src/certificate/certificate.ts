import type { Verdict } from "../checks/check.js";

/**
 * Whether a server computes the same bits for a request however it is served: alone, from its cache, streamed or not, in batches, preempted
 * and recomputed. It rests on the digests of logits that Octavo gives; of a server that gives none nothing is certified.
 */
export interface Certificate {
  /** `fail` when any token's logits differ; `inconclusive` when something could not be compared, or nothing was. */
  readonly verdict: Verdict;
  readonly target: string;
  readonly model: string | undefined;
  readonly numCases: number;
  /** What every other run of a case is held against is its first one: alone, with nothing cached. */
  readonly conditions: readonly CertifiedCondition[];
  /** The first token of each run that differs, at most 100 of them. */
  readonly divergences: readonly Divergence[];
  /** What was left out, and why. */
  readonly notes: readonly string[];
}

/** `whole`: not streamed, and read whole. */
export type CertificateCondition = "cached" | "whole" | "batch" | "preempted" | "evicted";

/** What was compared under one condition, in number. */
export interface CertifiedCondition {
  readonly name: CertificateCondition;
  /** Runs that were compared. */
  readonly runs: number;
  readonly tokens: number;
  readonly divergedRuns: number;
  readonly failedRuns: number;
}

/** Where the logits of a case first differ under a condition from those of the case alone. */
export interface Divergence {
  readonly caseId: string;
  readonly condition: CertificateCondition;
  /** Index of the first output token whose logits differ, or at which one of the two had ended. */
  readonly token: number;
  readonly expected: string | undefined;
  readonly got: string | undefined;
  /** Whether a reader could see it: the texts differ too. */
  readonly isVisible: boolean;
}

/** How a certificate of equal outputs is made. */
export interface CertifySettings {
  readonly seed: number;
  /** Requests of a batch, sent at once. */
  readonly batchSize: number;
  /** Times that each case is in a batch, each time with others. */
  readonly rounds: number;
  readonly signal: AbortSignal;
  readonly onProgress?: (progress: { readonly done: number; readonly total: number }) => void;
}
