import type { Backend, Program } from "@octavo/kernels";
import { OctavoError } from "@octavo/protocol/errors";
import type { Engine } from "./api.js";
import type { KvShape } from "./kv-cache/plan-kv-cache.js";
import type { SpeculationOptions } from "./speculation/speculation.js";
import { type SchedulingPolicyName, schedulingPolicyNames } from "./scheduler/policies/scheduling-policy.js";
import type { Tokenizer } from "@octavo/text/tokenizer/tokenizer";

export interface EngineOptions {
  /** Neither is disposed by the engine. */
  readonly backend: Backend;
  /** Compiled for at least `maxNumBatchedTokens` tokens. */
  readonly program: Program;
  readonly tokenizer: Tokenizer;
  /** Rows of the output head: the token ids that the model reads and samples. */
  readonly vocabSize: number;
  readonly hiddenSize: number;
  /** Each ends a sequence, unless it ignores EOS. */
  readonly eosTokenIds: readonly number[];
  /** Of the cache, which the engine creates and owns. */
  readonly kv: KvShape;
  /** See `planKvCache`; must hold `maxModelLen` tokens. */
  readonly numBlocks: number;
  readonly blockSize: number;
  /** Prompt and output tokens of a sequence together. */
  readonly maxModelLen: number;
  /** Sequences running at once; default 256. */
  readonly maxNumSeqs?: number | undefined;
  /** Tokens per step; default 2048. */
  readonly maxNumBatchedTokens?: number | undefined;
  /** Default true. */
  readonly enablePrefixCaching?: boolean | undefined;
  /** Default true; without it `maxNumBatchedTokens` must hold `maxModelLen`. */
  readonly enableChunkedPrefill?: boolean | undefined;
  /** Default `fcfs`. */
  readonly schedulingPolicy?: SchedulingPolicyName | undefined;
  /** Requests that may wait to be admitted; default 1024. More are refused with `queue_full`. */
  readonly maxQueuedRequests?: number | undefined;
  /** Prompt tokens of all waiting requests together; default 0, no limit. */
  readonly maxQueuedTokens?: number | undefined;
  /** The same per tenant, unless its account sets another limit; default 0, no limit. */
  readonly maxQueuedRequestsPerTenant?: number | undefined;
  readonly maxQueuedTokensPerTenant?: number | undefined;
  /**
   * Prompt tokens that one sequence may take of a step while other prompts are waiting too: keeps short prompts from waiting
   * behind a long one, and leaves no part of the budget unused. Default a quarter of the budget; 0 is off.
   */
  readonly longPrefillTokenThreshold?: number | undefined;
  /**
   * Prompts above that threshold computed side by side while other prompts are waiting; without others they get the whole
   * budget. Default 0, no limit; 2 under the fair policy.
   */
  readonly maxLongPartialPrefills?: number | undefined;
  /**
   * Target for the milliseconds of a step with prompts while other sequences generate: limits the gaps in their streams. Chunks are
   * never smaller than 128 tokens. Default 200; 0 is no limit. Needs chunked prefill.
   */
  readonly maxPrefillStepMs?: number | undefined;
  /** While less of the machine's memory is free, requests are refused with `overloaded`; default 0, never. */
  readonly minFreeMemoryBytes?: number | undefined;
  /**
   * Path of the crash journal, a file that outlives the process: a request in flight at two crashes is rejected from then on. Default
   * none.
   */
  readonly crashJournal?: string | undefined;
  /** Called when the crash journal can no longer be written. */
  readonly onWarning?: ((message: string) => void) | undefined;
  /** LoRA adapters in one step, at most; default adapters are off. */
  readonly maxLoras?: number | undefined;
  /** Drafts tokens and verifies several in one step; default off. Changes speed, never tokens. */
  readonly speculation?: SpeculationOptions | undefined;
  /** Allows forced evictions, preemptions and delays. Default false: then `Engine.faults` is undefined. */
  readonly enableFaultInjection?: boolean | undefined;
  readonly hooks?: EngineHooks | undefined;
}

/** A running sequence as hooks see it. */
export interface SequenceView {
  readonly requestId: string;
  readonly index: number;
  readonly numTokens: number;
  readonly numComputed: number;
}

/** For tests and comparisons; a hook that throws stops the engine. */
export interface EngineHooks {
  /** Before a step is planned: indices into `running` of sequences to preempt. */
  choosePreemptions?(running: readonly SequenceView[]): Iterable<number>;
  /** Raw logits of every sampled and scored token; setting this hook makes the backend return them. */
  onLogits?(requestId: string, sequenceIndex: number, position: number, logits: Float32Array): void;
  /** After a step's results were applied, with nothing in flight; the next step waits for the returned promise. */
  afterStep?(engine: RunningEngine): void | Promise<void>;
}

export interface RunningEngine extends Engine {
  /** Throws `internal_error` unless blocks, block tables and queues agree: free + cached + used = total. */
  checkIntegrity(): void;
}

export type ResolvedEngineOptions = Omit<
  Required<EngineOptions>,
  DefaultedOption | "hooks" | "crashJournal" | "onWarning" | "maxLoras" | "speculation"
> & {
  readonly [Key in DefaultedOption]: NonNullable<EngineOptions[Key]>;
} & {
  readonly hooks: EngineHooks;
  readonly crashJournal?: string | undefined;
  readonly onWarning?: ((message: string) => void) | undefined;
  readonly maxLoras?: number | undefined;
  readonly speculation?: SpeculationOptions | undefined;
};

type DefaultedOption =
  | "maxNumSeqs"
  | "maxNumBatchedTokens"
  | "enablePrefixCaching"
  | "enableChunkedPrefill"
  | "schedulingPolicy"
  | "maxQueuedRequests"
  | "maxQueuedTokens"
  | "maxQueuedRequestsPerTenant"
  | "maxQueuedTokensPerTenant"
  | "longPrefillTokenThreshold"
  | "maxLongPartialPrefills"
  | "maxPrefillStepMs"
  | "minFreeMemoryBytes"
  | "enableFaultInjection";

/** Fills in defaults. Throws `invalid_option`. */
export function resolveEngineOptions(options: EngineOptions): ResolvedEngineOptions {
  const maxNumBatchedTokens = options.maxNumBatchedTokens ?? 2048;
  const resolved: ResolvedEngineOptions = {
    ...options,
    maxNumBatchedTokens,
    maxNumSeqs: options.maxNumSeqs ?? 256,
    enablePrefixCaching: options.enablePrefixCaching ?? true,
    enableChunkedPrefill: options.enableChunkedPrefill ?? true,
    schedulingPolicy: options.schedulingPolicy ?? "fcfs",
    maxQueuedRequests: options.maxQueuedRequests ?? 1024,
    maxQueuedTokens: options.maxQueuedTokens ?? 0,
    maxQueuedRequestsPerTenant: options.maxQueuedRequestsPerTenant ?? 0,
    maxQueuedTokensPerTenant: options.maxQueuedTokensPerTenant ?? 0,
    longPrefillTokenThreshold: options.longPrefillTokenThreshold ?? Math.ceil(maxNumBatchedTokens / 4),
    maxLongPartialPrefills: options.maxLongPartialPrefills ?? (options.schedulingPolicy === "fair" ? 2 : 0),
    maxPrefillStepMs: options.maxPrefillStepMs ?? 200,
    minFreeMemoryBytes: options.minFreeMemoryBytes ?? 0,
    enableFaultInjection: options.enableFaultInjection ?? false,
    hooks: options.hooks ?? {},
  };
  integer("max_model_len", resolved.maxModelLen, 1);
  integer("max_num_seqs", resolved.maxNumSeqs, 1);
  integer("max_num_batched_tokens", resolved.maxNumBatchedTokens, 1);
  if (!schedulingPolicyNames.includes(resolved.schedulingPolicy)) {
    throw new OctavoError(
      "invalid_option",
      `scheduling_policy must be one of ${schedulingPolicyNames.join(", ")}, not ${resolved.schedulingPolicy}`,
      { param: "scheduling_policy" },
    );
  }
  integer("max_queued_requests", resolved.maxQueuedRequests, 0);
  integer("max_queued_tokens", resolved.maxQueuedTokens, 0);
  integer("max_queued_requests_per_tenant", resolved.maxQueuedRequestsPerTenant, 0);
  integer("max_queued_tokens_per_tenant", resolved.maxQueuedTokensPerTenant, 0);
  integer("max_long_partial_prefills", resolved.maxLongPartialPrefills, 0);
  integer("long_prefill_token_threshold", resolved.longPrefillTokenThreshold, 0);
  integer("max_prefill_step_ms", resolved.maxPrefillStepMs, 0);
  integer("min_free_memory_bytes", resolved.minFreeMemoryBytes, 0);
  if (resolved.maxLoras !== undefined) integer("max_loras", resolved.maxLoras, 1);
  if (resolved.speculation !== undefined)
    integer("num_speculative_tokens", resolved.speculation.numSpeculativeTokens, 1);
  const { maxModelLen, numBlocks, blockSize, enableChunkedPrefill } = resolved;
  if (numBlocks * blockSize < maxModelLen) {
    throw new OctavoError(
      "invalid_option",
      `the KV cache holds ${numBlocks} blocks of ${blockSize} tokens (${numBlocks * blockSize}), less than one sequence of ` +
        `max_model_len = ${maxModelLen}. Give it more memory or set max_model_len to at most ${numBlocks * blockSize}.`,
      { param: "max_model_len" },
    );
  }
  if (!enableChunkedPrefill && maxNumBatchedTokens < maxModelLen) {
    throw new OctavoError(
      "invalid_option",
      `without chunked prefill a step must hold a whole prompt: set max_num_batched_tokens (${maxNumBatchedTokens}) to at ` +
        `least max_model_len (${maxModelLen}), or enable chunked prefill.`,
      { param: "max_num_batched_tokens" },
    );
  }
  return resolved;
}

function integer(param: string, value: number, min: number): void {
  if (Number.isSafeInteger(value) && value >= min) return;
  throw new OctavoError("invalid_option", `${param} must be an integer of at least ${min}, not ${value}`, {
    param,
  });
}
