import type { Observation } from "@octavo/evals";
import type { ConfigPatch, FeedEntry } from "@octavo/optimize";

/** How a patch is proven, wherever its replay runs. */
export interface ProofOptions {
  readonly entry: FeedEntry;
  readonly patch: ConfigPatch["set"];
  readonly pairs: number;
  readonly looks: number;
  readonly speedup: number;
  readonly seed: number;
  readonly leastImprovement: number;
  readonly onPair?: (done: number) => void;
}

type SeenInReplay =
  | "caseId"
  | "tenant"
  | "scheduledEpochMs"
  | "firstTokenMs"
  | "durationMs"
  | "promptTokens"
  | "completionTokens"
  | "failureCode";

/** A call of a replay that has no engine to tell more. */
export function replayObservation(seen: Pick<Observation, SeenInReplay> & Partial<Observation>): Observation {
  return {
    cluster: undefined,
    condition: "replay",
    replica: undefined,
    tags: [],
    gapsMs: [],
    cacheHitRatio: undefined,
    preemptions: undefined,
    recomputedTokens: undefined,
    batchSize: undefined,
    prefillTokensInBatch: undefined,
    queueDepth: undefined,
    replicaCount: undefined,
    queueMs: undefined,
    finishReason: undefined,
    scores: {},
    output: undefined,
    ...seen,
  };
}
