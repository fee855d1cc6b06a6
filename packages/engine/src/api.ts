import type { OctavoError } from "@octavo/protocol/errors";
import type { Explanation, RequestName, SlowGap } from "./evidence/explanation.js";
import type { Neighbours } from "./evidence/neighbours.js";
import type { Spread } from "./evidence/spread.js";
import type { LoggedStep } from "./evidence/step-log.js";
import type { LoadedAdapter } from "./adapters/adapter.js";
import type { FaultControl, FaultKind, RequestFaults } from "./faults/fault.js";
import type { Account } from "./scheduler/account.js";
import type { SamplingParams } from "./sampling/sampling-params.js";
import type { Grammar, GrammarSpec } from "@octavo/text/structured/grammar";

/**
 * Requests that are one to whoever sent them, as the prompts of one HTTP request are: queued one after the other with
 * the same object, all of them are taken or, by `queue_full` on the first, none.
 */
export type RequestBatch = object;

/** Bounds on a request's time in ms, each from its arrival; one that passes ends it with `deadline_exceeded`. */
export interface Deadlines {
  /** To be admitted. */
  readonly queueMs?: number | undefined;
  /** To its first token; the fair policy admits those of one tenant that are due first. */
  readonly firstTokenMs?: number | undefined;
  /** To its end. */
  readonly totalMs?: number | undefined;
}

/** What the engine is asked for. Exactly one of prompt text or ids has been resolved to ids by the caller. */
export interface GenerationRequest {
  readonly kind: "generate";
  readonly requestId: string;
  /** Opaque to the engine: observers get it back with the request. */
  readonly owner?: object | undefined;
  readonly promptTokens: Int32Array;
  readonly params: SamplingParams;
  /**
   * What the output must look like, made by this engine's `compileGrammar`. A sequence ends with `stop` as soon as nothing
   * can follow its text, even before `minTokens`.
   */
  readonly grammar?: Grammar;
  /** Bounds the reasoning of each sequence. */
  readonly thinking?: ThinkingBudget;
  /** The LoRA adapter to run under, from the model's `adapters`; without one the model itself answers. */
  readonly adapter?: LoadedAdapter | undefined;
  /** First prompt token whose prediction prompt logprobs give, those before are undefined; default 1, nothing predicts 0. */
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
  /** Of the time since, what compiling the grammar took. */
  readonly grammarMs?: number;
  /** Also give, with `done`, a digest of the raw logits behind each output token. */
  readonly wantLogitsDigests?: boolean;
  /** Only for an engine with `faults`. */
  readonly faults?: RequestFaults | undefined;
}

/** Tokens that reasoning may take before its end is forced. */
export interface ThinkingBudget {
  /** Between the tags. */
  readonly maxTokens: number;
  readonly startTags: readonly string[];
  readonly endTags: readonly string[];
  /** What is forced: an end tag as tokens, at least one. */
  readonly endTokens: Int32Array;
  /** The prompt has begun reasoning. */
  readonly isOpen: boolean;
}

export interface EmbeddingRequest {
  readonly kind: "embed";
  readonly requestId: string;
  /** See `GenerationRequest`. */
  readonly owner?: object | undefined;
  readonly promptTokens: Int32Array;
  readonly pooling: "mean" | "last";
  readonly normalize: boolean;
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
      /** By sequence, one of 16 hexadecimal digits for each output token, where they were asked for. Equal ones are equal bits. */
      readonly logitsDigests?: readonly (readonly string[])[];
    };

export interface Usage {
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly cachedTokens: number;
}

/** Evidence of how a request was served. Times in ms. */
export interface ServingRecord {
  /** From arrival to being admitted. */
  readonly queueMs: number;
  /** Requests that waited to be admitted when the engine was given it. */
  readonly queueDepthAtArrival: number;
  readonly timeToFirstTokenMs: number | undefined;
  readonly prefillMs: number;
  readonly decodeMs: number;
  readonly e2eMs: number;
  /** Its part of the backend's time; the parts of all requests add up to it. */
  readonly kernelMs: number;
  /** Output waited for its reader so long, all together. */
  readonly readerLagMs: number;
  /** Between the steps that gave a sequence output. */
  readonly gaps: GapSummary;
  /** Steps that computed some of its tokens. */
  readonly numSteps: number;
  /** Sequences in those steps, its own included. */
  readonly batchSize: Spread;
  /** Prompt tokens of others in those steps. */
  readonly sharedPrefillTokens: Spread;
  readonly cachedTokens: number;
  /** Of the prompt's tokens. */
  readonly cacheHitRatio: number;
  /** Prompt tokens whose blocks had been cached, and were evicted before it came. */
  readonly evictedPrefixTokens: number;
  readonly blocksHit: number;
  readonly blocksAllocated: number;
  /** Cached blocks of other content that it took. */
  readonly blocksEvicted: number;
  readonly preemptions: number;
  /** Tokens computed again since a preemption lost them. */
  readonly recomputedTokens: number;
  /** Guesses at its tokens that were checked, and how many of them came true. */
  readonly draftTokens: number;
  readonly acceptedDraftTokens: number;
}

export interface GapSummary {
  readonly count: number;
  readonly meanMs: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
}

/** What the engine knows of a request, running or over. */
export interface RequestEvidence {
  readonly requestId: string;
  readonly tenant: string;
  readonly isOver: boolean;
  readonly record: ServingRecord;
  /** Where the time to the first token went; undefined before there is one. */
  readonly firstToken: Explanation | undefined;
  /** Gaps of more than twice the usual length, slowest first; at most 16. */
  readonly slowGaps: readonly SlowGap[];
}

/** What the engine remembers: its latest steps, about 16,000, and its latest requests, about 2,000. */
export interface Evidence {
  /** Oldest first. */
  readonly steps: readonly LoggedStep[];
  /** Undefined for a step that was forgotten or has not ended. */
  step(number: number): LoggedStep | undefined;
  /** Undefined for a request that was forgotten or never was; of several with one id, the latest. */
  request(requestId: string): RequestEvidence | undefined;
  /** Who was there beside a request, as they would have to be sent again; of those that are remembered. */
  neighbours(requestId: string): Neighbours | undefined;
}

export interface EngineStats {
  readonly running: number;
  readonly waiting: number;
  /** How long the request has been waiting that came first of those that were never admitted; 0 where none waits. */
  readonly oldestWaitingMs: number;
  /** Sequences that run and wait, by tenant, for those who have any. */
  readonly tenants?: ReadonlyMap<string, { readonly running: number; readonly waiting: number }>;
  readonly kvCacheUsage: number;
  /** Token positions of a block. */
  readonly blockSize: number;
  readonly totalBlocks: number;
  readonly freeBlocks: number;
  readonly cachedBlocks: number;
  /** Guesses at a sequence's next tokens that a step checks at most; absent without speculation. */
  readonly numSpeculativeTokens?: number;
  /** Names of the adapters of requests that run and that wait; absent where none can be loaded. */
  readonly adapters?: {
    /** Most that run at a time. */
    readonly max: number;
    readonly running: readonly string[];
    readonly waiting: readonly string[];
  };
}

/** A request that was not served to its end: there was too much to do, or it cannot be computed. */
export interface RefusedRequest {
  readonly requestId: string;
  readonly tenant: string;
  readonly lane: number;
  /**
   * `queue_full`: it found no place in the queue; `displaced`: it gave way in the queue to one of a more urgent lane or of a
   * tenant with fewer; `quarantined`: computing it failed, or the process died of it, twice; `memory`: the machine was short of it; the others: it was in the queue, without a first token or
   * not complete for too long.
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

/** Engine happenings that metrics count; called synchronously, must not throw. */
export interface EngineObserver {
  onStep?(step: StepRecord): void;
  /** A request was admitted from the waiting queue for the first time. */
  onPrefixLookup?(queriedTokens: number, hitTokens: number): void;
  onPreemption?(requestId: string): void;
  onFirstToken?(request: RequestName, timeToFirstTokenMs: number): void;
  onInterToken?(request: RequestName, gapMs: number): void;
  /** A step has checked `draftTokens` guesses at a sequence's next tokens; the first `acceptedTokens` of them came true. */
  onDraft?(draftTokens: number, acceptedTokens: number): void;
  onFinished?(request: FinishedRequest): void;
  /**
   * Nothing more will be computed for a request. Called once for every queued request, however it ended, and after
   * `onFinished`. An aborted request may still be in a step when it finishes; one that fails never finishes.
   */
  onSettled?(request: SettledRequest): void;
  onRefused?(request: RefusedRequest): void;
  /** The backend failed in a step; those who were in it are tried alone. */
  onStepFailed?(error: OctavoError): void;
  /** A fault that was asked for has happened. */
  onFault?(kind: FaultKind): void;
  /** A grammar was asked for and is there: how long its caller waited, and whether it was known already. */
  onGrammarCompiled?(seconds: number, cached: boolean): void;
}

export interface StepRecord {
  readonly step: number;
  readonly startMs: number;
  readonly durationMs: number;
  readonly computeMs: number;
  /** Of `computeMs`, the part of its prompt tokens. */
  readonly prefillMs: number;
  readonly numSequences: number;
  readonly prefillTokens: number;
  readonly decodeTokens: number;
  /** Guessed tokens that the step computed besides, to check them. */
  readonly draftTokens?: number;
  /** Tokens accepted into outputs in this step, all sequences together. */
  readonly generatedTokens?: number;
  readonly blocksUsed: number;
  readonly blocksEvicted: number;
  readonly preemptions: number;
}

export interface SettledRequest {
  readonly requestId: string;
  /** As the request gave it. */
  readonly owner: object | undefined;
  /** Its share of the backend's time, in ms; the shares add up to the `computeMs` of all steps. */
  readonly kernelMs: number;
}

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
  /** Requests that wait to be admitted for the first time. */
  readonly queueDepth: number;
  readonly evidence: Evidence;
  /** Undefined unless the engine was made with `enableFaultInjection`. */
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
   * Compiles a constraint off the event loop; each content once as long as it is remembered. Throws `invalid_request`
   * naming what of it is malformed, not supported or too large, `request_cancelled` on abort. Tenants take turns, and one
   * whose constraints take long leaves a thread to the others.
   */
  compileGrammar(spec: GrammarSpec, signal?: AbortSignal, tenant?: string): Promise<Grammar>;
  observe(observer: EngineObserver): Disposable;
  /**
   * Takes no new requests; resolves when all it has, waiting ones included, have ended. Those that have not after
   * `deadlineMs` milliseconds end with `abort`.
   */
  drain(deadlineMs: number): Promise<void>;
  resetPrefixCache(): boolean;
  /** The failure that stopped the engine, if any. */
  readonly failure: OctavoError | undefined;
}
