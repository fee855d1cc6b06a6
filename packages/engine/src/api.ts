import type { OpTime, RankExchange } from "@octavo/kernels";
import type { OctavoError } from "@octavo/protocol/errors";
import type { Explanation, RequestName, SlowGap } from "./evidence/explanation.js";
import type { Neighbours } from "./evidence/neighbours.js";
import type { ServingRecord } from "./evidence/serving-record.js";
import type { LoggedStep } from "./evidence/step-log.js";
import type { Pooling } from "@octavo/artifacts/program/model-config";
import type { LoadedAdapter } from "./adapters/adapter.js";
import type { FaultControl, FaultKind, RequestFaults } from "./faults/fault.js";
import type { Account } from "./scheduler/account.js";
import type { HotPrefix } from "./kv-cache/prefix-heat.js";
import type { PromptImage } from "./scheduler/prompt-image.js";
import type { SamplingParams } from "./sampling/sampling-params.js";
import type { Grammar, GrammarSpec } from "@octavo/text/structured/grammar";

export type { HotPrefix, PromptImage };
export type { GapSummary, ServingRecord } from "./evidence/serving-record.js";

/**
 * Groups requests that their client sent as one, such as the prompts of one HTTP request: queued one after the other with
 * the same object, all of them are accepted or, by `queue_full` on the first, none.
 */
export type RequestBatch = object;

/** Deadlines in ms from a request's arrival; a request that misses one ends with `deadline_exceeded`. */
export interface Deadlines {
  /** For admission. */
  readonly queueMs?: number | undefined;
  /** For the first token; within a tenant, the fair policy admits the earliest deadline first. */
  readonly firstTokenMs?: number | undefined;
  /** For completion. */
  readonly totalMs?: number | undefined;
}

/** A request for generation. The caller has tokenized the prompt. */
export interface GenerationRequest {
  readonly kind: "generate";
  readonly requestId: string;
  /** Opaque to the engine: observers get it back with the request. */
  readonly owner?: object | undefined;
  readonly promptTokens: Int32Array;
  readonly params: SamplingParams;
  /** Images among the prompt's tokens, by their positions; only where the backend takes rows in place of tokens. */
  readonly images?: readonly PromptImage[] | undefined;
  /**
   * Output that another engine gave for the same request, from the first token on: it is taken as it is, delivered again, and
   * generation goes on behind it, as after a preemption. Only for one sequence; no logprobs or digests are given of it.
   */
  readonly emittedTokens?: Int32Array | undefined;
  /**
   * The grammar of the output, made by this engine's `compileGrammar`. A sequence ends with `stop` as soon as nothing can
   * follow its text, even before `minTokens`.
   */
  readonly grammar?: Grammar;
  /** Limits the reasoning of each sequence. */
  readonly thinking?: ThinkingBudget;
  /** The LoRA adapter to run under, from the model's `adapters`; default none. */
  readonly adapter?: LoadedAdapter | undefined;
  /** First prompt position with a prompt logprob; earlier ones are undefined. Default 1, since nothing predicts token 0. */
  readonly promptLogprobsFrom?: number;
  /** Prefix blocks are shared only between requests with the same salt. */
  readonly cacheSalt?: string;
  /** Lower runs earlier; only with the priority policy. */
  readonly priority?: number;
  /** Whom it is accounted to; default the tenant `default`. */
  readonly account?: Account;
  readonly deadlines?: Deadlines;
  /** See `RequestBatch`. */
  readonly batch?: RequestBatch;
  /** `performance.now()` at arrival. */
  readonly arrivalMs?: number;
  /** Part of the time since arrival spent on compiling the grammar. */
  readonly grammarMs?: number;
  /** Also return, with `done`, a digest of the raw logits of each output token. */
  readonly wantLogitsDigests?: boolean;
  /** Only for an engine with fault injection. */
  readonly faults?: RequestFaults | undefined;
}

/** A budget of reasoning tokens, after which the end of reasoning is forced. */
export interface ThinkingBudget {
  /** Between the tags. */
  readonly maxTokens: number;
  readonly startTags: readonly string[];
  readonly endTags: readonly string[];
  /** The end tag to force, at least one token. */
  readonly endTokens: Int32Array;
  /** The prompt ends inside reasoning. */
  readonly isOpen: boolean;
}

/** A request for one embedding, as the engine takes it: token ids in, `[hidden size]` floats out. */
export interface EmbeddingRequest {
  readonly kind: "embed";
  readonly requestId: string;
  /** See `GenerationRequest`. */
  readonly owner?: object | undefined;
  readonly promptTokens: Int32Array;
  /** How the hidden states of its tokens become one. */
  readonly pooling: Pooling;
  /** Scaled to length 1. */
  readonly normalize: boolean;
  /** Where the tokens of a second text begin, for models that know types of tokens. */
  readonly secondFrom?: number | undefined;
  /** See `GenerationRequest`. */
  readonly cacheSalt?: string;
  /** See `GenerationRequest`. */
  readonly adapter?: LoadedAdapter | undefined;
  readonly account?: Account;
  readonly deadlines?: Deadlines;
  /** See `RequestBatch`. */
  readonly batch?: RequestBatch;
  readonly arrivalMs?: number;
}

/** Why a sequence ended. `abort` means the client left or the engine was told to drop it. */
export type FinishReason = "stop" | "length" | "abort";

/** A token with its log-probability (natural logarithm, before temperature and bounds of sampling). */
export interface TokenLogprob {
  readonly token: number;
  readonly logprob: number;
  /** 1 is the most likely token. */
  readonly rank: number;
  /** Alternatives, best first. */
  readonly top: readonly { readonly token: number; readonly logprob: number }[];
}

/** New output of one sequence of a request. Text and tokens are increments. */
export interface SequenceDelta {
  readonly index: number;
  readonly text: string;
  readonly tokens: readonly number[];
  /** Parallel to `tokens`, when asked for. */
  readonly logprobs: readonly TokenLogprob[] | undefined;
  readonly finishReason: FinishReason | undefined;
  /** The stop string or stop token id that ended it; undefined for EOS and length. */
  readonly stopReason: string | number | undefined;
}

/** Events of one request, in order: at most one `prompt`, any number of `delta`, exactly one `done`. */
export type GenerationEvent =
  | {
      readonly kind: "prompt";
      /** First entry undefined: the first token has no prediction. */
      readonly promptLogprobs: readonly (TokenLogprob | undefined)[];
    }
  | { readonly kind: "delta"; readonly deltas: readonly SequenceDelta[] }
  | {
      readonly kind: "done";
      readonly usage: Usage;
      readonly record: ServingRecord;
      /** By sequence, a digest of 16 hexadecimal digits per output token, if requested. Equal digests mean equal bits. */
      readonly logitsDigests?: readonly (readonly string[])[];
    };

/** Tokens of a request. `cachedTokens` are those of the prompt that the prefix cache had. */
export interface Usage {
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly cachedTokens: number;
}

/** What the engine knows of a request, running or over. */
export interface RequestEvidence {
  readonly requestId: string;
  readonly tenant: string;
  readonly isOver: boolean;
  readonly record: ServingRecord;
  /** Where the time to the first token went; undefined before the first token. */
  readonly firstToken: Explanation | undefined;
  /** Gaps of more than twice the median, slowest first; at most 16. */
  readonly slowGaps: readonly SlowGap[];
}

/** The engine's evidence: its latest steps, about 16,000, and its latest requests, about 2,000. */
export interface Evidence {
  /** Oldest first. */
  readonly steps: readonly LoggedStep[];
  /** Undefined for a step that is no longer kept or has not ended. */
  step(number: number): LoggedStep | undefined;
  /** Undefined for an unknown request; the latest of several with the same id. */
  request(requestId: string): RequestEvidence | undefined;
  /** The kept requests that were in the engine beside a request, with what is needed to replay them. */
  neighbours(requestId: string): Neighbours | undefined;
}

/** The engine at this moment. Counts are of sequences unless they say otherwise. */
export interface EngineStats {
  readonly running: number;
  readonly waiting: number;
  /** Waiting time of the oldest request that was never admitted; 0 if none waits. */
  readonly oldestWaitingMs: number;
  /** Running and waiting sequences, by tenant. */
  readonly tenants?: ReadonlyMap<string, { readonly running: number; readonly waiting: number }>;
  /** Share of the blocks in use, 0 to 1. */
  readonly kvCacheUsage: number;
  /** Token positions of a block. */
  readonly blockSize: number;
  readonly totalBlocks: number;
  readonly freeBlocks: number;
  readonly cachedBlocks: number;
  /** Draft tokens per sequence and step, at most; absent without speculation. */
  readonly numSpeculativeTokens?: number;
  /** Names of the adapters of running and waiting requests; absent if adapters are off. */
  readonly adapters?: {
    /** Adapters that run at a time, at most. */
    readonly max: number;
    readonly running: readonly string[];
    readonly waiting: readonly string[];
  };
}

/** A request that was refused before completion, for lack of room or time or because it cannot be computed. */
export interface RefusedRequest {
  readonly requestId: string;
  readonly tenant: string;
  readonly lane: number;
  /**
   * `queue_full`: the queue was full; `displaced`: it was displaced from the queue by a request of a more urgent lane or of a tenant
   * with fewer; `quarantined`: it failed a step twice or was in flight at two crashes; `memory`: the machine was short of memory;
   * the others: it missed a deadline for admission, for its first token or for completion.
   */
  readonly reason:
    | "queue_full"
    | "displaced"
    | "quarantined"
    | "memory"
    | "queue_deadline"
    | "first_token_deadline"
    | "total_deadline";
}

/** Engine events for metrics; called synchronously, must not throw. */
export interface EngineObserver {
  onStep?(step: StepRecord): void;
  /** A request was admitted from the waiting queue for the first time. */
  onPrefixLookup?(queriedTokens: number, hitTokens: number): void;
  onPreemption?(requestId: string): void;
  onFirstToken?(request: RequestName, timeToFirstTokenMs: number): void;
  onInterToken?(request: RequestName, gapMs: number): void;
  /** A step has verified `draftTokens` draft tokens of a sequence, the first `acceptedTokens` of which were accepted. */
  onDraft?(draftTokens: number, acceptedTokens: number): void;
  onFinished?(request: FinishedRequest): void;
  /**
   * Nothing more will be computed for a request. Called once for every queued request, however it ended, and after
   * `onFinished`. An aborted request may still be in a step when it finishes; one that fails never finishes.
   */
  onSettled?(request: SettledRequest): void;
  onRefused?(request: RefusedRequest): void;
  /** The backend failed in a step; its requests are retried alone. */
  onStepFailed?(error: OctavoError): void;
  /** The device was lost and is back, with the weights; requests in flight are computed again. */
  onDeviceRenewed?(seconds: number): void;
  /** A fault was injected. */
  onFault?(kind: FaultKind): void;
  /** A grammar is compiled: how long its caller waited, and whether it was cached. */
  onGrammarCompiled?(seconds: number, cached: boolean): void;
}

/** One step of the engine. Times in ms; `startMs` is `performance.now()`'s. */
export interface StepRecord {
  readonly step: number;
  readonly startMs: number;
  readonly durationMs: number;
  readonly computeMs: number;
  /** What each rank got from the others; absent where one computes alone. */
  readonly exchanges?: readonly RankExchange[] | undefined;
  /** What each kind of op took, with the option `opTimes`. */
  readonly opTimes?: readonly OpTime[] | undefined;
  /** The part of `computeMs` spent on prompt tokens. */
  readonly prefillMs: number;
  readonly numSequences: number;
  readonly prefillTokens: number;
  readonly decodeTokens: number;
  /** Draft tokens that the step verified in addition. */
  readonly draftTokens?: number;
  /** Tokens appended to outputs in this step, over all sequences. */
  readonly generatedTokens?: number;
  readonly blocksUsed: number;
  readonly blocksEvicted: number;
  readonly preemptions: number;
}

/** What a request took of the backend's time, known once its last step was divided among all that were in it. */
export interface SettledRequest {
  readonly requestId: string;
  /** As the request gave it. */
  readonly owner: object | undefined;
  /** Its share of the backend's time, in ms; the shares add up to the `computeMs` of all steps. */
  readonly kernelMs: number;
}

/** A request that left the engine, with what it was given and what that took. */
export interface FinishedRequest {
  readonly requestId: string;
  /** As the request gave it. */
  readonly owner?: object | undefined;
  readonly tenant: string;
  readonly lane: number;
  readonly reasons: readonly FinishReason[];
  readonly usage: Usage;
  readonly record: ServingRecord;
  readonly n: number;
  readonly maxTokens: number | undefined;
  /** Tokens of the longest of the `n` sequences. */
  readonly maxSequenceTokens?: number;
}

/** The running engine: one per artifact. */
export interface Engine extends AsyncDisposable {
  readonly stats: EngineStats;
  /** Requests waiting for their first admission. */
  readonly queueDepth: number;
  readonly evidence: Evidence;
  /** Undefined unless the engine was created with `enableFaultInjection`. */
  readonly faults: FaultControl | undefined;
  readonly maxModelLen: number;
  /**
   * Queues a request. Throws `context_length_exceeded`, `queue_full`, `overloaded`, `invalid_request`,
   * `request_quarantined` or `shutting_down` at once.
   * Leaving the iteration early or aborting the signal frees its blocks before the next step.
   */
  generate(request: GenerationRequest, signal?: AbortSignal): AsyncIterable<GenerationEvent>;
  embed(
    request: EmbeddingRequest,
    signal?: AbortSignal,
  ): Promise<{ readonly embedding: Float32Array; readonly usage: Usage }>;
  /**
   * Compiles a constraint off the event loop, cached by content. Throws `invalid_request` naming what is malformed, unsupported or
   * too large, `request_cancelled` on abort. Tenants take turns; one with slow constraints leaves a thread to the others.
   */
  compileGrammar(spec: GrammarSpec, signal?: AbortSignal, tenant?: string): Promise<Grammar>;
  observe(observer: EngineObserver): Disposable;
  /**
   * Accepts no new requests; resolves when all requests, waiting ones included, have ended. Those still running after
   * `deadlineMs` milliseconds end with `abort`.
   */
  drain(deadlineMs: number): Promise<void>;
  resetPrefixCache(): boolean;
  /** Prefixes that requests found in the cache, the hottest first, as many as `maxTokens` hold; none of adapters. */
  hotPrefixes(maxTokens: number): readonly HotPrefix[];
  /** The failure that stopped the engine, if any. */
  readonly failure: OctavoError | undefined;
}
