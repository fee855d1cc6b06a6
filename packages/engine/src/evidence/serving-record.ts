import type { Spread } from "./spread.js";

/** Evidence of how a request was served. Times in ms. */
export interface ServingRecord {
  /** From arrival to admission. */
  readonly queueMs: number;
  /** Requests waiting for admission when the engine received it. */
  readonly queueDepthAtArrival: number;
  readonly timeToFirstTokenMs: number | undefined;
  readonly prefillMs: number;
  readonly decodeMs: number;
  readonly e2eMs: number;
  /** Its share of the backend's compute time; the shares of all requests add up to it. */
  readonly kernelMs: number;
  /** Total time that output waited for its reader. */
  readonly readerLagMs: number;
  /** Between the steps that gave a sequence output. */
  readonly gaps: GapSummary;
  /** Steps that computed some of its tokens. */
  readonly numSteps: number;
  /** Sequences in those steps, its own included. */
  readonly batchSize: Spread;
  /** Prompt tokens of other requests in those steps. */
  readonly sharedPrefillTokens: Spread;
  readonly cachedTokens: number;
  /** `cachedTokens` relative to the prompt's tokens. */
  readonly cacheHitRatio: number;
  /** Prompt tokens that had been cached and were evicted before it came. */
  readonly evictedPrefixTokens: number;
  readonly blocksHit: number;
  readonly blocksAllocated: number;
  /** Cached blocks with other content that it evicted. */
  readonly blocksEvicted: number;
  readonly preemptions: number;
  /** Tokens recomputed after preemptions. */
  readonly recomputedTokens: number;
  /** Draft tokens that were verified, and how many were accepted. */
  readonly draftTokens: number;
  readonly acceptedDraftTokens: number;
}

/** Times between the tokens of a request, in ms. */
export interface GapSummary {
  readonly count: number;
  readonly meanMs: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
}
