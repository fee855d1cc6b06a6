import { inGroup, option, valueType } from "@octavo/protocol/options";
import { quantizationNames } from "@octavo/artifacts/quantization/quantization-names";
import {
  adapterSpec,
  deviceName,
  imageLimit,
  imagePixels,
  speculativeConfig,
  templateSource,
  weightCorruption,
} from "./option-values.js";

export { isNgram } from "./option-values.js";
export { schedulingOptions } from "./scheduling-options.js";

const floatTypes = ["auto", "f32", "f16", "bf16"] as const;

/** vLLM's names of the same types. */
const floatTypeAliases: Readonly<Record<string, (typeof floatTypes)[number]>> = {
  bfloat16: "bf16",
  float16: "f16",
  half: "f16",
  float32: "f32",
  float: "f32",
};

/** One of `names`, or of vLLM's names for some of them. */
function typeOf<const Name extends string>(names: readonly (Name | (typeof floatTypes)[number])[]) {
  const plain = valueType.choice(names);
  return {
    ...plain,
    expects: `${plain.expects} (or vLLM's ${Object.keys(floatTypeAliases).join(", ")})`,
    parse: (text, earlier) =>
      (Object.hasOwn(floatTypeAliases, text) ? floatTypeAliases[text] : undefined) ??
      plain.parse(text, earlier),
  } satisfies typeof plain;
}

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
    weightCache: option.of(
      valueType.nonEmpty(),
      "--weight-cache <folder>",
      "keep packed weights for faster starts: a folder, auto or off",
      { default: "off" },
    ),
    /**
     * Reads bf16 weights where they lie in the model's files instead of repacking them, on CPUs with AVX-512: starts copy nothing
     * and processes that serve the same files share them, but many streams are slower. The files must not change meanwhile.
     */
    weightsInPlace: option.toggle(
      "--weights-in-place",
      "read bf16 weights in place: faster starts and shared memory, slower with many streams",
    ),
    /**
     * Where the model runs: `cpu`, `webgpu` (or `webgpu:NAME`, an adapter by part of its name), or `auto`: a GPU where one can be used,
     * else the CPU. GPUs need the package `webgpu` beside Octavo.
     */
    device: option.of(
      deviceName,
      "--device <name>",
      "where the model runs: cpu, webgpu, webgpu:ADAPTER or auto",
      {
        default: "cpu",
      },
    ),
    /** Let the model sleep: its weights and KV cache can be freed and taken back while the process runs. Models on GPUs cannot. */
    enableSleepMode: option.toggle(
      "--enable-sleep-mode",
      "let the operator free weights and KV cache for a while: POST /sleep, /wake_up",
    ),
    /**
     * How a GPU multiplies: `f32`, or `f16` on its matrix units (subgroup matrices), where inputs and weights are rounded to f16 and sums are
     * f32. An adapter without such units is refused.
     */
    gpuProducts: option.of(
      typeOf(["f32", "f16"] as const),
      "--gpu-products <type>",
      "type that a GPU multiplies in; f16 takes its matrix units",
      { default: "f32" },
    ),
    /** Threads of the native backend. */
    numThreads: option.integer("--threads <n>", "compute threads", {
      min: 1,
      max: 1024,
      defaultText: "the machine's cores",
    }),
    /**
     * Ranks that share the work of every layer, each with its part of the threads on processors of its own, and its part of the weights
     * and of the KV cache in memory near them. The tokens are those of one rank, to the bit. Must divide the heads of keys and values.
     */
    tensorParallelSize: option.integer(
      "--tensor-parallel-size <n>",
      "ranks that share each layer, for machines with several memory nodes: same tokens",
      { min: 1, max: 64, default: 1 },
    ),
    /**
     * Stages one behind the other, each a part of the layers with its weights and its KV cache in a process of its own; the last is this one. For
     * memory, not for speed: a token passes them in turn. The tokens are those of one stage, to the bit.
     */
    pipelineParallelSize: option.integer(
      "--pipeline-parallel-size <n>",
      "stages of layers in processes of their own, one behind the other: same tokens",
      { min: 1, max: 64, default: 1 },
    ),
    /** Stages on other hosts, in order, each an `octavo stage`; the model lies at the same path there. Empty: processes of this host. */
    pipelineStageAddresses: option.of(
      valueType.list(valueType.nonEmpty()),
      "--pipeline-stage-addresses <address...>",
      "host:port of an octavo stage for every stage but the last",
      { default: [], defaultText: "processes of this host" },
    ),
    pipelineKeyFile: option.text(
      "--pipeline-key-file <file>",
      "the secret that stages on other hosts have too, at least 16 characters",
    ),
    /**
     * Which kernels compute each kind of work. `auto`: where a processor has several, those measured to be clearly faster at the first
     * start, kept in the user's cache folder; `features`: those of its best instruction set; or paths by kind (f32, bf16, quantised,
     * codebook, ops), like `bf16=avx512`. Replicas that must agree in bits need the same.
     */
    kernels: option.of(
      valueType.nonEmpty(),
      "--kernels <choice>",
      "kernels by measured speed, by features, or paths by kind: bf16=avx512,ops=avx2",
      { default: "auto" },
    ),
    /** Images of one request, for models that take images; 0 leaves out what reads them. */
    limitMmPerPrompt: option.of(
      imageLimit,
      "--limit-mm-per-prompt <limits>",
      'images of one request, as {"image": 4}; 0 turns them off',
      { default: 16, defaultText: '{"image": 16}' },
    ),
    /**
     * Most pixels of an image that keeps its shape, after it was resized: up to 16,384 tokens of the model. By default what the checkpoint says,
     * and 1,024 tokens at most, since time grows with the square of them.
     */
    maxImagePixels: option.of(
      imagePixels,
      "--mm-processor-kwargs <json>",
      'what images that keep their shape are resized to, as {"max_pixels": 1048576}',
      { defaultText: "the checkpoint's, 1,024 tokens at most" },
    ),
    /** Type of unquantised weights; `auto` keeps each as the checkpoint has it. */
    dtype: option.of(typeOf(floatTypes), "--dtype <type>", "type of unquantised weights", {
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
    /**
     * What texts are scored by: `auto`, the head that classifies or embeddings; or `yes-no`, the probability that the model answers
     * "yes" rather than "no" when asked whether a document answers a query, for the published Qwen3-Reranker models.
     */
    scoreBy: option.choice(
      ["auto", "yes-no"],
      "--score-by <what>",
      "score texts by the model's head or embeddings (auto), or by its yes or no (Qwen3-Reranker)",
      { default: "auto" },
    ),
  }),
  ...inGroup("Engine", {
    /**
     * Prompt and output tokens of a sequence together; by default what the model and the memory allow. Models with LongRoPE (Phi-3,
     * Phi-4-mini) use their short factors where it is at most the length they were first trained with, else the long ones.
     */
    maxModelLen: option.integer("--max-model-len <tokens>", "longest context", {
      min: 1,
      defaultText: "the model's, or what fits the KV cache",
    }),
    /** Bytes of the KV cache. */
    kvCacheMemoryBytes: option.bytes("--kv-cache-memory <size>", "memory of the KV cache, e.g. 2GiB", {
      aliases: ["--kv-cache-memory-bytes"],
      defaultText: "40 % of the free memory, at most 4 GiB",
    }),
    /** Instead: the share of the memory free after loading, above 0 and at most 1. */
    memoryUtilization: option.number(
      "--gpu-memory-utilization <share>",
      "instead: the share of the memory free after loading",
      { above: 0, max: 1, aliases: ["--device-memory-utilization"] },
    ),
    /** Type of cached keys and values; `auto` follows the weights (f16 for quantised ones); int8 keeps a scale per token and head. */
    kvCacheDtype: option.of(
      typeOf([...floatTypes, "int8"]),
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
      `verify several draft tokens per step, e.g. '{"method": "ngram", "num_speculative_tokens": 5}'; methods: ngram, suffix, draft_model, eagle3, mtp`,
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
    maxCpuLoras: option.integer(
      "--max-cpu-loras <n>",
      "adapters in memory; one more takes the place of an unused one",
      {
        min: 1,
        max: 65_536,
        defaultText: "64, or as many as --lora-modules names",
      },
    ),
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
