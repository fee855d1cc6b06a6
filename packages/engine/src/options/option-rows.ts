import { inGroup, option, valueType } from "@octavo/protocol/options";
import { quantizationNames } from "@octavo/artifacts/quantization/quantization-names";
import { schedulingPolicyNames } from "../scheduler/policies/scheduling-policy.js";
import { adapterSpec, speculativeConfig, templateSource, weightCorruption } from "./option-values.js";

export { isNgram } from "./option-values.js";

const floatTypes = ["auto", "f32", "f16", "bf16"] as const;

/** Options that the engine takes as they are. Adding one is a row here and the code that reads it. */
export const schedulingOptions = inGroup("Engine", {
  /** Sequences that run at the same time. */
  maxNumSeqs: option.integer("--max-num-seqs <n>", "sequences running at once", { min: 1, default: 256 }),
  /** Tokens computed in one step. */
  maxNumBatchedTokens: option.integer("--max-num-batched-tokens <tokens>", "token budget of a step", {
    min: 1,
    default: 2048,
  }),
  /** Requests that may wait for admission; further ones are rejected with `queue_full`. */
  maxQueuedRequests: option.integer("--max-queued-requests <n>", "waiting requests before 429", {
    min: 0,
    default: 1024,
  }),
  /** Prompt tokens of all waiting requests together; 0 is no limit. */
  maxQueuedTokens: option.integer(
    "--max-queued-tokens <tokens>",
    "prompt tokens of the waiting requests before 429",
    { min: 0, default: 0, defaultText: "0, no limit" },
  ),
  /** The same limit for the requests of one tenant, whose account may say otherwise; 0 is no limit. */
  maxQueuedRequestsPerTenant: option.integer(
    "--max-queued-requests-per-tenant <n>",
    "waiting requests of one tenant before 429",
    { min: 0, default: 0, defaultText: "0, no limit", group: "Tenants" },
  ),
  /** The same limit for the requests of one tenant, whose account may say otherwise; 0 is no limit. */
  maxQueuedTokensPerTenant: option.integer(
    "--max-queued-tokens-per-tenant <tokens>",
    "prompt tokens of one tenant's waiting requests before 429",
    { min: 0, default: 0, defaultText: "0, no limit", group: "Tenants" },
  ),
  /** Share the KV cache of equal prompt prefixes. */
  enablePrefixCaching: option.toggle("--[no-]enable-prefix-caching", "share the KV cache of equal prefixes"),
  /** Split long prompts over several steps; without it `maxNumBatchedTokens` must hold `maxModelLen`. */
  enableChunkedPrefill: option.toggle(
    "--[no-]enable-chunked-prefill",
    "split long prompts over several steps",
    { default: true },
  ),
  /**
   * Prompt tokens that one sequence may take of a step while other prompts are waiting for some of it: keeps short prompts from queueing
   * behind a long one without leaving budget unused. 0 is off.
   */
  longPrefillTokenThreshold: option.integer(
    "--long-prefill-token-threshold <tokens>",
    "prompt tokens that one request may take of a step while others wait",
    { min: 0, defaultText: "a quarter of --max-num-batched-tokens; 0 is off" },
  ),
  /** Prompts above that threshold that are prefilled side by side while other requests want part of the budget. 0 is no limit. */
  maxLongPartialPrefills: option.integer(
    "--max-long-partial-prefills <n>",
    "prompts above that threshold prefilled side by side while others wait",
    { min: 0, defaultText: "2 with the fair policy, else 0, no limit" },
  ),
  /**
   * Milliseconds that a step with prompt tokens may take while others generate, in pieces of at least 128 tokens: bounds the
   * inter-token gaps of running streams. 0 is no limit. Needs chunked prefill.
   */
  maxPrefillStepMs: option.integer(
    "--max-prefill-step-ms <ms>",
    "milliseconds of a step with prompt tokens while others generate; 0 is no limit",
    { min: 0, default: 200 },
  ),
  /** Who is admitted first. */
  schedulingPolicy: option.choice(
    schedulingPolicyNames,
    "--scheduling-policy <name>",
    "who is served first: by arrival, by priority, or fairly between tenants",
    { default: "fcfs" },
  ),
  /** While less of the machine's memory is free, requests are rejected with `overloaded`. */
  minFreeMemoryBytes: option.bytes(
    "--min-free-memory <size>",
    "reject requests while less of the machine's memory is free, e.g. 512MiB",
    { default: 0, defaultText: "0, never" },
  ),
  /** A file that outlives the process: requests that were being computed at two crashes are rejected with `request_quarantined`. */
  crashJournal: option.text(
    "--crash-journal <file>",
    "reject requests in flight at two crashes; this file remembers who was in flight",
    { defaultText: "none" },
  ),
  /** Let requests make the engine evict, preempt, wait and be slow. */
  enableFaultInjection: option.toggle(
    "--enable-fault-injection",
    "let requests make the engine evict, preempt, wait and be slow; for tests and evaluations only",
    { group: "Faults" },
  ),
});

/** Options of loading a model. */
export const loadingOptions = {
  ...inGroup("Model", {
    /** Branch, tag or commit of a hub model. */
    revision: option.text("--revision <name>", "branch, tag or commit of a Hugging Face id"),
    /** Cache of downloaded models. */
    downloadDir: option.text("--download-dir <folder>", "cache of downloaded models", {
      defaultText: "Hugging Face's own",
    }),
    /**
     * Keeps packed weights on disk, so that later starts map them and processes share them: a folder, `auto` for `octavo-weights` in
     * Hugging Face's cache, or `off`. Takes as much disk space as the model.
     */
    weightCache: option.text(
      "--weight-cache <folder>",
      "keep packed weights for faster starts: a folder, auto or off",
      { default: "off" },
    ),
    /**
     * Reads bf16 weights where they lie in the model's files instead of repacking them, on CPUs with AVX512-BF16: starts copy nothing
     * and processes that serve the same files share them, but many streams are slower. The files must not change meanwhile.
     */
    weightsInPlace: option.toggle(
      "--weights-in-place",
      "read bf16 weights in place: faster starts and shared memory, slower with many streams",
      { default: false },
    ),
    /** Threads of the native backend. */
    numThreads: option.integer("--threads <n>", "compute threads", {
      min: 1,
      max: 1024,
      defaultText: "the machine's cores",
    }),
    /** Type of unquantised weights; `auto` keeps each as the checkpoint has it. */
    dtype: option.choice(floatTypes, "--dtype <type>", "type of unquantised weights", {
      default: "auto",
      defaultText: "auto, the checkpoint's",
    }),
    /** Quantisation scheme of a safetensors checkpoint; `auto` takes the one that its configuration names. */
    quantization: option.choice(
      ["auto", ...quantizationNames],
      "--quantization <scheme>",
      "scheme of a quantised safetensors model",
      { default: "auto", defaultText: "auto, what the checkpoint says" },
    ),
  }),
  ...inGroup("Engine", {
    /** Prompt and output tokens of a sequence together; by default what the model and the memory allow. */
    maxModelLen: option.integer("--max-model-len <tokens>", "longest context", {
      min: 1,
      defaultText: "the model's, or what fits the KV cache",
    }),
    /** Bytes of the KV cache. */
    kvCacheMemoryBytes: option.bytes("--kv-cache-memory <size>", "memory of the KV cache, e.g. 2GiB", {
      defaultText: "40 % of the free memory, at most 4 GiB",
    }),
    /** Instead: the share of the memory free after loading, above 0 and at most 1. */
    memoryUtilization: option.number(
      "--gpu-memory-utilization <share>",
      "instead: the share of the memory free after loading",
      { above: 0, max: 1 },
    ),
    /** Type of cached keys and values; `auto` follows the weights (f16 for quantised ones); int8 keeps a scale per token and head. */
    kvCacheDtype: option.choice(
      [...floatTypes, "int8"],
      "--kv-cache-dtype <type>",
      "type of cached keys and values",
      { default: "auto", defaultText: "auto, that of the weights, f16 if they are quantised" },
    ),
    /** Tokens in a block of the KV cache. */
    blockSize: option.integer("--block-size <tokens>", "tokens in a block of KV cache", {
      min: 1,
      max: 256,
      default: 16,
    }),
  }),
  ...inGroup("Speculation", {
    /** Propose draft tokens and verify several in one step: changes speed, never tokens. */
    speculativeConfig: option.of(
      speculativeConfig,
      "--speculative-config <json>",
      `verify several draft tokens per step, e.g. '{"method": "ngram", "num_speculative_tokens": 5}'; methods: ngram, suffix, draft_model`,
      { defaultText: "off" },
    ),
  }),
  ...inGroup("LoRA", {
    /** Serve LoRA adapters beside the model: those of `loraModules`, and those loaded later. */
    enableLora: option.toggle("--enable-lora", "serve LoRA adapters beside the model"),
    /** Adapters to load at the start. */
    loraModules: option.of(
      valueType.list(adapterSpec),
      "--lora-modules <adapter...>",
      "adapters to load: NAME=PATH, or JSON with name, path and base_model_name",
      { default: [] },
    ),
    /** Adapters in one step. */
    maxLoras: option.integer("--max-loras <n>", "adapters in one batch", { min: 1, max: 1024, default: 8 }),
    /** Adapters in memory. */
    maxCpuLoras: option.integer("--max-cpu-loras <n>", "adapters in memory", {
      min: 1,
      max: 65_536,
      defaultText: "64, or as many as --lora-modules names",
    }),
    /** Largest rank of an adapter. */
    maxLoraRank: option.integer("--max-lora-rank <r>", "largest rank of an adapter", {
      min: 1,
      max: 4096,
      default: 64,
    }),
  }),
  ...inGroup("Requests", {
    /** A Jinja template that replaces the checkpoint's. */
    chatTemplate: option.of(
      templateSource,
      "--chat-template <file>",
      "chat template: a file, or the text itself",
      { defaultText: "the model's" },
    ),
    /** Sampling defaults: `auto` takes generation_config.json's, `vllm` takes OpenAI's. */
    generationConfig: option.choice(
      ["auto", "vllm"],
      "--generation-config <source>",
      "sampling defaults: the model's (auto) or OpenAI's (vllm)",
      { default: "auto" },
    ),
  }),
  ...inGroup("Faults", {
    /** Make a replica whose weights drifted; needs `enableFaultInjection` and bypasses the weight cache. */
    corruptWeights: option.of(
      weightCorruption,
      "--fault-corrupt-weights <seed:scale[:pattern]>",
      "with --enable-fault-injection: add noise of this relative size to the weights, or to those whose names match the pattern",
    ),
  }),
};

/** Errors name options as vLLM's configuration does. */
export function paramOf(key: string): string {
  return key.replace(/Bytes$/, "").replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
