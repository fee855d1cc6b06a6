import type { ServingRecord } from "../../api.js";

const none = { min: 0, mean: 0, max: 0 };

/** The record of an uneventful request. */
export const plainServingRecord: ServingRecord = {
  queueMs: 0,
  queueDepthAtArrival: 0,
  timeToFirstTokenMs: 1,
  prefillMs: 1,
  decodeMs: 1,
  e2eMs: 2,
  kernelMs: 1,
  readerLagMs: 0,
  gaps: { count: 0, meanMs: 0, p50Ms: 0, p99Ms: 0, maxMs: 0 },
  numSteps: 1,
  batchSize: { min: 1, mean: 1, max: 1 },
  sharedPrefillTokens: none,
  cachedTokens: 0,
  cacheHitRatio: 0,
  evictedPrefixTokens: 0,
  blocksHit: 0,
  blocksAllocated: 1,
  blocksEvicted: 0,
  preemptions: 0,
  recomputedTokens: 0,
  draftTokens: 0,
  acceptedDraftTokens: 0,
};
