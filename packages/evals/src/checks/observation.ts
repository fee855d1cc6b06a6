/**
 * One answered request as a check sees it. It comes from an answer of our own traffic, or from a span that a gateway, a
 * cluster or an OpenTelemetry store recorded: unknown fields are undefined, and a check reports the ones it lacks.
 */
export interface Observation {
  /** Pairs observations of one case under several conditions. */
  readonly caseId: string;
  /** Resampled together: a conversation, a document. Undefined: the case is its own cluster. */
  readonly cluster: string | undefined;
  /** Which side of a comparison it is on, such as `baseline` and `candidate`, `solo` and `burst`. */
  readonly condition: string;
  readonly tenant: string | undefined;
  readonly replica: string | undefined;
  readonly tags: readonly string[];
  /** When it was meant to be sent, in ms since 1970. */
  readonly scheduledEpochMs: number;
  /** From `scheduledEpochMs` to the first and to the last output. */
  readonly firstTokenMs: number | undefined;
  readonly durationMs: number;
  /** Between outputs, in order. Empty where it was not streamed, or only `gapSummary` was recorded. */
  readonly gapsMs: readonly number[];
  readonly gapSummary?: ObservedGaps;
  /** The slowest gaps and what they were due to, where the server says. */
  readonly slowGaps?: readonly ObservedSlowGap[];
  readonly promptTokens: number | undefined;
  readonly completionTokens: number | undefined;
  readonly cacheHitRatio: number | undefined;
  readonly preemptions: number | undefined;
  readonly recomputedTokens: number | undefined;
  readonly batchSize: number | undefined;
  /** Most prompt tokens of others in one step that it shared. */
  readonly prefillTokensInBatch: number | undefined;
  /** Queue depth of the whole deployment when the request arrived. */
  readonly queueDepth: number | undefined;
  readonly replicaCount: number | undefined;
  readonly queueMs: number | undefined;
  readonly failureCode: string | undefined;
  readonly finishReason: string | undefined;
  /** By evaluator; null where it could not tell or does not apply. */
  readonly scores: Readonly<Record<string, number | null>>;
  /** Names of evaluators that failed to score it, as when a judge was down, once for each score that is lacking. */
  readonly failedScores?: readonly string[];
  /** The output's text and calls as one string, for equality and for showing. */
  readonly output: string | undefined;
  /** Digests of each output token's logits, separated by spaces, if the server gives them: equal digests mean equal bits. */
  readonly logitsDigest?: string;
  /** Prompt tokens computed again because their cached blocks had been evicted before the request came. */
  readonly evictedPrefixTokens?: number;
  /** Most of the KV cache that was in use while it was served, 0 to 1. */
  readonly kvCacheUsage?: number;
  /** A fixed text under the model, token by token: the same text under every condition. */
  readonly forced?: readonly ForcedToken[];
  /** Scores of parts of the output, where an evaluator scores parts: first and past-the-end token of the part. */
  readonly parts?: readonly {
    readonly evaluator: string;
    readonly fromToken: number;
    readonly toToken: number;
    readonly value: number;
  }[];
  /** Scores of the slices of the output that the published table of the tail has, each scored as one text. */
  readonly slices?: Observation["parts"];
}

/** One token of a fixed text, as the model predicts it. */
export interface ForcedToken {
  /** What it is in the text, such as `prose`, `json_key`, `tool_argument`. */
  readonly role: string;
  readonly logprob: number;
  /** 1: the model's first choice. */
  readonly rank: number;
}

/** What a span keeps of the gaps of a request. */
export interface ObservedGaps {
  readonly count: number;
  readonly p99Ms: number | undefined;
  readonly maxMs: number | undefined;
}

/** A slow gap between pieces of a streamed answer, with what the server says caused it. */
export interface ObservedSlowGap {
  /** Index of the output that ended it: the gap is `gapsMs[output - 1]` where each output was a piece. */
  readonly output: number | undefined;
  readonly ms: number;
  readonly usualMs: number | undefined;
  /** As `docs/guide/slow-tokens.md` lists them. */
  readonly cause: string;
  /** Prompt tokens of others that were computed in it. */
  readonly prefillTokens: number | undefined;
  /** Requests that had a hand in it, the greatest first. */
  readonly culprits: readonly string[];
}
