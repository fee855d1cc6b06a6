import type { Observation } from "../observation.js";

/** An answered request of which nothing else is known. */
export function observation(seen: Partial<Observation> & { readonly caseId: string }): Observation {
  return {
    cluster: undefined,
    condition: "candidate",
    tenant: undefined,
    replica: undefined,
    tags: [],
    scheduledEpochMs: 0,
    firstTokenMs: undefined,
    durationMs: 100,
    gapsMs: [],
    promptTokens: undefined,
    completionTokens: undefined,
    cacheHitRatio: undefined,
    preemptions: undefined,
    recomputedTokens: undefined,
    batchSize: undefined,
    prefillTokensInBatch: undefined,
    queueDepth: undefined,
    replicaCount: undefined,
    queueMs: undefined,
    failureCode: undefined,
    finishReason: "stop",
    scores: {},
    output: undefined,
    ...seen,
  };
}
