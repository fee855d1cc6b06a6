import type { Backend, Program, StateSpec, Vacating } from "@octavo/kernels";
import { OctavoError } from "@octavo/protocol/errors";
import { type OptionsOf, type ResolvedOptions, resolveOptions } from "@octavo/protocol/options";
import type { Engine } from "./api.js";
import type { KvShape } from "./kv-cache/plan-kv-cache.js";
import type { SpeculationOptions } from "./speculation/speculation.js";
import { defaultLongPrefillTokenThreshold } from "./scheduler/scheduler-options.js";
import { paramOf, schedulingOptions } from "./options/scheduling-options.js";
import type { Tokenizer } from "@octavo/text/tokenizer/tokenizer";

/** What an engine runs and within which bounds. `createEngine` throws `invalid_option` for values that do not go together. */
export interface EngineOptions extends OptionsOf<typeof schedulingOptions> {
  /** Neither is disposed by the engine. */
  readonly backend: Backend;
  /** Compiled for at least `maxNumBatchedTokens` tokens. */
  readonly program: Program;
  readonly tokenizer: Tokenizer;
  /** Rows of the output head: the token ids that the model reads and samples. */
  readonly vocabSize: number;
  readonly hiddenSize: number;
  /** Columns of what the program gives of a row; default `hiddenSize`. */
  readonly rowSize?: number | undefined;
  /** The program pools rows itself: it takes whole sequences, in a step each. */
  readonly poolsRows?: boolean | undefined;
  /** False refuses requests for text; default true. */
  readonly hasHead?: boolean | undefined;
  /** Each ends a sequence, unless it ignores EOS. */
  readonly eosTokenIds: readonly number[];
  /** Shape of the cache, which the engine creates and owns. */
  readonly kv: KvShape;
  /** Slots of recurrent state, where the program keeps any; no more sequences run at once than there are slots. */
  readonly states?: StateSpec | undefined;
  /** See `planKvCache`; must hold `maxModelLen` tokens. */
  readonly numBlocks: number;
  readonly blockSize: number;
  /** Prompt and output tokens of a sequence together. */
  readonly maxModelLen: number;
  /** Called when the crash journal can no longer be written. */
  readonly onWarning?: ((message: string) => void) | undefined;
  /** LoRA adapters in one step; undefined where none are served. */
  readonly maxLoras?: number | undefined;
  /** Proposes draft tokens and verifies several in one step; default off. Changes speed, never tokens. */
  readonly speculation?: SpeculationOptions | undefined;
  /** How a lost device comes back; without it the engine stops then. */
  readonly renewal?: ModelRenewal | undefined;
  readonly hooks?: EngineHooks | undefined;
}

/** Weights and programs on a device that may be lost. */
export interface ModelRenewal {
  readonly vacating: Vacating;
  /** Frees the weights, opens the device again and loads them there; resolves to its name. Caches are the engine's. */
  renew(): Promise<string>;
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

/** What becomes of requests when the engine pauses, in vLLM's words. */
export const pauseModes = ["abort", "wait", "keep"] as const;

/**
 * `abort` ends all requests; `wait` lets running ones finish, and holds those that wait; `keep` holds both, and running ones go on after
 * `resume` with the same tokens, their context computed again.
 */
export type PauseMode = (typeof pauseModes)[number];

/** An engine whose steps its owner may stop, and whose caches it may take away for a while. */
export interface RunningEngine extends Engine {
  /** Throws `internal_error` unless blocks, block tables and queues agree: free + cached + used = total. */
  checkIntegrity(): void;
  /**
   * Resolves once no step runs and none will until `resume`; requests that come meanwhile wait in the queue, under its bounds and their
   * deadlines. Nothing holds blocks then. Throws `engine_failed` or `shutting_down`.
   */
  pause(mode: PauseMode): Promise<void>;
  resume(): void;
  /** Paused: forgets cached prefixes and frees the KV cache, until `refillCaches`. */
  vacateCaches(backend: Vacating): void;
  refillCaches(backend: Vacating): void;
  /** Has the backend compile all that steps may run, but for a draft model's. */
  prepare(onProgress?: (done: number, total: number) => void): Promise<void>;
  /** Bytes of the KV cache. */
  readonly cacheBytes: number;
}

export interface ResolvedEngineOptions
  extends Omit<EngineOptions, keyof typeof schedulingOptions>, ResolvedOptions<typeof schedulingOptions> {
  readonly longPrefillTokenThreshold: number;
  readonly maxLongPartialPrefills: number;
  readonly hooks: EngineHooks;
}

/** Fills in defaults. Throws `invalid_option`. */
export function resolveEngineOptions(options: EngineOptions): ResolvedEngineOptions {
  const scheduling = resolveOptions(schedulingOptions, options, paramOf);
  const { maxNumBatchedTokens, schedulingPolicy } = scheduling;
  const resolved: ResolvedEngineOptions = {
    ...options,
    ...scheduling,
    maxNumSeqs: Math.min(scheduling.maxNumSeqs, options.states?.numSlots ?? Number.POSITIVE_INFINITY),
    longPrefillTokenThreshold:
      scheduling.longPrefillTokenThreshold ?? defaultLongPrefillTokenThreshold(maxNumBatchedTokens),
    maxLongPartialPrefills: scheduling.maxLongPartialPrefills ?? (schedulingPolicy === "fair" ? 2 : 0),
    hooks: options.hooks ?? {},
  };
  integer("max_model_len", resolved.maxModelLen, 1);
  if (resolved.maxLoras !== undefined) integer("max_loras", resolved.maxLoras, 1);
  if (resolved.speculation !== undefined)
    integer("num_speculative_tokens", resolved.speculation.numSpeculativeTokens, 1);
  checkStates(resolved);
  if (resolved.opTimes && options.backend.timesOps !== true)
    throw new OctavoError(
      "invalid_option",
      "op_times needs a backend that times its ops: one of a single stage, and of GPUs one with timestamps (timestamp-query).",
      { param: "op_times" },
    );
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

/** Tokens that a step certainly has left for an image beside sequences that generate; 0 where the backend takes none. */
export function mostImageTokens({
  backend,
  maxNumBatchedTokens,
  maxNumSeqs,
}: Pick<ResolvedEngineOptions, "maxNumBatchedTokens" | "maxNumSeqs"> & {
  readonly backend: Pick<Backend, "takesGiven">;
}): number {
  return backend.takesGiven === true ? maxNumBatchedTokens - maxNumSeqs : 0;
}

function checkStates({ states, speculation }: ResolvedEngineOptions): void {
  if (states === undefined) return;
  integer("the number of state slots", states.numSlots, 1);
  const numDrafted = speculation?.numSpeculativeTokens ?? 0;
  if (states.maxDraftTokens < numDrafted) {
    throw new OctavoError(
      "invalid_option",
      `a slot of state has room for ${states.maxDraftTokens} draft tokens, fewer than num_speculative_tokens = ${numDrafted}.`,
      { param: "num_speculative_tokens" },
    );
  }
}

function integer(param: string, value: number, min: number): void {
  if (Number.isSafeInteger(value) && value >= min) return;
  throw new OctavoError("invalid_option", `${param} must be an integer of at least ${min}, not ${value}`, {
    param,
  });
}
