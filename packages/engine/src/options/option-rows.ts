import { inGroup, option } from "@octavo/protocol/options";
import { quantizationNames } from "@octavo/artifacts/quantization/quantization-names";
import { schedulingPolicyNames } from "../scheduler/policies/scheduling-policy.js";
import { adapterSpec, speculativeConfig, templateSource, weightCorruption } from "./option-values.js";

export { isNgram } from "./option-values.js";

const floatTypes = ["auto", "f32", "f16", "bf16"] as const;

/** Options that the engine takes as they are. Adding one is a row here and the code that reads it. */
export const schedulingOptions = inGroup("Engine", {
  /** Sequences that run at the same time. */
  maxNumSeqs: {
    flag: "max-num-seqs",
    type: option.integer({ min: 1 }),
    default: 256,
    help: "sequences running at once",
  },
  /** Tokens computed in one step. */
  maxNumBatchedTokens: {
    flag: "max-num-batched-tokens",
    type: option.integer({ min: 1 }, "tokens"),
    default: 2048,
    help: "token budget of a step",
  },
  /** Requests that may wait for admission; further ones are rejected with `queue_full`. */
  maxQueuedRequests: {
    flag: "max-queued-requests",
    type: option.integer({ min: 0 }),
    default: 1024,
    help: "waiting requests before 429",
  },
  /** Prompt tokens of all waiting requests together; 0 is no limit. */
  maxQueuedTokens: {
    flag: "max-queued-tokens",
    type: option.integer({ min: 0 }, "tokens"),
    default: 0,
    defaultText: "0, no limit",
    help: "prompt tokens of the waiting requests before 429",
  },
  /** The same limit for the requests of one tenant, whose account may say otherwise; 0 is no limit. */
  maxQueuedRequestsPerTenant: {
    flag: "max-queued-requests-per-tenant",
    type: option.integer({ min: 0 }),
    default: 0,
    defaultText: "0, no limit",
    help: "waiting requests of one tenant before 429",
    group: "Tenants",
  },
  /** The same limit for the requests of one tenant, whose account may say otherwise; 0 is no limit. */
  maxQueuedTokensPerTenant: {
    flag: "max-queued-tokens-per-tenant",
    type: option.integer({ min: 0 }, "tokens"),
    default: 0,
    defaultText: "0, no limit",
    help: "prompt tokens of one tenant's waiting requests before 429",
    group: "Tenants",
  },
  /** Share the KV cache of equal prompt prefixes. */
  enablePrefixCaching: {
    flag: "enable-prefix-caching",
    offFlag: "no-enable-prefix-caching",
    type: option.toggle(),
    default: true,
    help: "share the KV cache of equal prefixes",
  },
  /** Split long prompts over several steps; without it `maxNumBatchedTokens` must hold `maxModelLen`. */
  enableChunkedPrefill: {
    flag: "enable-chunked-prefill",
    offFlag: "no-enable-chunked-prefill",
    type: option.toggle(),
    default: true,
    help: "split long prompts over several steps",
  },
  /**
   * Prompt tokens that one sequence may take of a step while other prompts are waiting for some of it: keeps short prompts from queueing
   * behind a long one without leaving budget unused. 0 is off.
   */
  longPrefillTokenThreshold: {
    flag: "long-prefill-token-threshold",
    type: option.integer({ min: 0 }, "tokens"),
    defaultText: "a quarter of --max-num-batched-tokens; 0 is off",
    help: "prompt tokens that one request may take of a step while others wait",
  },
  /** Prompts above that threshold that are prefilled side by side while other requests want part of the budget. 0 is no limit. */
  maxLongPartialPrefills: {
    flag: "max-long-partial-prefills",
    type: option.integer({ min: 0 }),
    defaultText: "2 with the fair policy, else 0, no limit",
    help: "prompts above that threshold prefilled side by side while others wait",
  },
  /**
   * Milliseconds that a step with prompt tokens may take while others generate, in pieces of at least 128 tokens: bounds the
   * inter-token gaps of running streams. 0 is no limit. Needs chunked prefill.
   */
  maxPrefillStepMs: {
    flag: "max-prefill-step-ms",
    type: option.integer({ min: 0 }, "ms"),
    default: 200,
    help: "milliseconds of a step with prompt tokens while others generate; 0 is no limit",
  },
  /** Who is admitted first. */
  schedulingPolicy: {
    flag: "scheduling-policy",
    type: option.choice(schedulingPolicyNames),
    default: "fcfs",
    help: "who is served first: by arrival, by priority, or fairly between tenants",
  },
  /** While less of the machine's memory is free, requests are rejected with `overloaded`. */
  minFreeMemoryBytes: {
    flag: "min-free-memory",
    type: option.bytes(),
    default: 0,
    defaultText: "0, never",
    help: "reject requests while less of the machine's memory is free, e.g. 512MiB",
  },
  /** A file that outlives the process: requests that were being computed at two crashes are rejected with `request_quarantined`. */
  crashJournal: {
    flag: "crash-journal",
    type: option.text("file"),
    defaultText: "none",
    help: "reject requests in flight at two crashes; this file remembers who was in flight",
  },
  /** Let requests make the engine evict, preempt, wait and be slow. */
  enableFaultInjection: {
    flag: "enable-fault-injection",
    type: option.toggle(),
    default: false,
    help: "let requests make the engine evict, preempt, wait and be slow; for tests and evaluations only",
    group: "Faults",
  },
});

/** Options of loading a model. */
export const loadingOptions = {
  ...inGroup("Model", {
    /** Branch, tag or commit of a hub model. */
    revision: {
      flag: "revision",
      type: option.text("name"),
      help: "branch, tag or commit of a Hugging Face id",
    },
    /** Cache of downloaded models. */
    downloadDir: {
      flag: "download-dir",
      type: option.text("folder"),
      defaultText: "Hugging Face's own",
      help: "cache of downloaded models",
    },
    /**
     * Keeps packed weights on disk, so that later starts map them and processes share them: a folder, `auto` for `octavo-weights` in
     * Hugging Face's cache, or `off`. Takes as much disk space as the model.
     */
    weightCache: {
      flag: "weight-cache",
      type: option.text("folder"),
      default: "off",
      help: "keep packed weights for faster starts: a folder, auto or off",
    },
    /**
     * Reads bf16 weights where they lie in the model's files instead of repacking them, on CPUs with AVX512-BF16: starts copy nothing
     * and processes that serve the same files share them, but many streams are slower. The files must not change meanwhile.
     */
    weightsInPlace: {
      flag: "weights-in-place",
      type: option.toggle(),
      default: false,
      help: "read bf16 weights in place: faster starts and shared memory, slower with many streams",
    },
    /** Threads of the native backend. */
    numThreads: {
      flag: "threads",
      type: option.integer({ min: 1, max: 1024 }),
      defaultText: "the machine's cores",
      help: "compute threads",
    },
    /** Type of unquantised weights; `auto` keeps each as the checkpoint has it. */
    dtype: {
      flag: "dtype",
      type: option.choice(floatTypes, "type"),
      default: "auto",
      defaultText: "auto, the checkpoint's",
      help: "type of unquantised weights",
    },
    /** Quantisation scheme of a safetensors checkpoint; `auto` takes the one that its configuration names. */
    quantization: {
      flag: "quantization",
      type: option.choice(["auto", ...quantizationNames], "scheme"),
      default: "auto",
      defaultText: "auto, what the checkpoint says",
      help: "scheme of a quantised safetensors model",
    },
  }),
  ...inGroup("Engine", {
    /** Prompt and output tokens of a sequence together; by default what the model and the memory allow. */
    maxModelLen: {
      flag: "max-model-len",
      type: option.integer({ min: 1 }, "tokens"),
      defaultText: "the model's, or what fits the KV cache",
      help: "longest context",
    },
    /** Bytes of the KV cache. */
    kvCacheMemoryBytes: {
      flag: "kv-cache-memory",
      type: option.bytes({ min: 0 }),
      defaultText: "40 % of the free memory, at most 4 GiB",
      help: "memory of the KV cache, e.g. 2GiB",
    },
    /** Instead: the share of the memory free after loading, above 0 and at most 1. */
    memoryUtilization: {
      flag: "gpu-memory-utilization",
      type: option.number({ above: 0, max: 1 }, "share"),
      help: "instead: the share of the memory free after loading",
    },
    /** Type of cached keys and values; `auto` follows the weights (f16 for quantised ones); int8 keeps a scale per token and head. */
    kvCacheDtype: {
      flag: "kv-cache-dtype",
      type: option.choice([...floatTypes, "int8"], "type"),
      default: "auto",
      defaultText: "auto, that of the weights, f16 if they are quantised",
      help: "type of cached keys and values",
    },
    /** Tokens in a block of the KV cache. */
    blockSize: {
      flag: "block-size",
      type: option.integer({ min: 1, max: 256 }, "tokens"),
      default: 16,
      help: "tokens in a block of KV cache",
    },
  }),
  ...inGroup("Speculation", {
    /** Propose draft tokens and verify several in one step: changes speed, never tokens. */
    speculativeConfig: {
      flag: "speculative-config",
      type: speculativeConfig,
      defaultText: "off",
      help: `verify several draft tokens per step, e.g. '{"method": "ngram", "num_speculative_tokens": 5}'; methods: ngram, suffix, draft_model`,
    },
  }),
  ...inGroup("LoRA", {
    /** Serve LoRA adapters beside the model: those of `loraModules`, and those loaded later. */
    enableLora: {
      flag: "enable-lora",
      type: option.toggle(),
      default: false,
      help: "serve LoRA adapters beside the model",
    },
    /** Adapters to load at the start. */
    loraModules: {
      flag: "lora-modules",
      type: option.list(adapterSpec),
      default: [],
      help: "adapters to load: NAME=PATH, or JSON with name, path and base_model_name",
    },
    /** Adapters in one step. */
    maxLoras: {
      flag: "max-loras",
      type: option.integer({ min: 1, max: 1024 }),
      default: 8,
      help: "adapters in one batch",
    },
    /** Adapters in memory. */
    maxCpuLoras: {
      flag: "max-cpu-loras",
      type: option.integer({ min: 1, max: 65_536 }),
      defaultText: "64, or as many as --lora-modules names",
      help: "adapters in memory",
    },
    /** Largest rank of an adapter. */
    maxLoraRank: {
      flag: "max-lora-rank",
      type: option.integer({ min: 1, max: 4096 }, "r"),
      default: 64,
      help: "largest rank of an adapter",
    },
  }),
  ...inGroup("Requests", {
    /** A Jinja template that replaces the checkpoint's. */
    chatTemplate: {
      flag: "chat-template",
      type: templateSource,
      defaultText: "the model's",
      help: "chat template: a file, or the text itself",
    },
    /** Sampling defaults: `auto` takes generation_config.json's, `vllm` takes OpenAI's. */
    generationConfig: {
      flag: "generation-config",
      type: option.choice(["auto", "vllm"], "source"),
      default: "auto",
      help: "sampling defaults: the model's (auto) or OpenAI's (vllm)",
    },
  }),
  ...inGroup("Faults", {
    /** Make a replica whose weights drifted; needs `enableFaultInjection` and bypasses the weight cache. */
    corruptWeights: {
      flag: "fault-corrupt-weights",
      type: weightCorruption,
      help: "with --enable-fault-injection: add noise of this relative size to the weights, or to those whose names match the pattern",
    },
  }),
};

/** Errors name options as vLLM's configuration does. */
export function paramOf(key: string): string {
  return key.replace(/Bytes$/, "").replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
