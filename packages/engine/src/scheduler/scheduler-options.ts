import type { SchedulingPolicyName } from "./policies/scheduling-policy.js";

export interface SchedulerOptions {
  readonly maxNumSeqs: number;
  /** The token budget of a step. */
  readonly maxNumBatchedTokens: number;
  readonly enablePrefixCaching: boolean;
  readonly enableChunkedPrefill: boolean;
  /** Prompt tokens that one sequence may take of a step while other prompts are left; 0 is no limit. */
  readonly longPrefillTokenThreshold: number;
  /** Prompts above that threshold computed side by side while other prompts are left; default no limit. */
  readonly maxLongPartialPrefills?: number | undefined;
  readonly policy: SchedulingPolicyName;
  /** Adapters that may run at a time; default no limit. */
  readonly maxLoras?: number | undefined;
}

/** Where nobody says otherwise: a quarter of the step. */
export function defaultLongPrefillTokenThreshold(maxNumBatchedTokens: number): number {
  return Math.ceil(maxNumBatchedTokens / 4);
}
