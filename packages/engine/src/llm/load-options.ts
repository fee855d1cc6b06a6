import type { Backend, KvDtype } from "@octavo/kernels";
import type { AdapterSpec } from "../adapters/adapter.js";
import type { EngineOptions } from "../engine-options.js";
import type { WeightCorruption } from "../faults/corrupt-weights.js";
import type { DownloadProgress } from "@octavo/artifacts/hub/download-progress";
import type { SpeculativeConfig } from "../speculation/speculative-config.js";

type EngineSettings = Pick<
  EngineOptions,
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
  | "crashJournal"
  | "enableFaultInjection"
  | "hooks"
>;

/** How a model is loaded and served. Names follow vLLM's flags. */
export interface LoadOptions extends EngineSettings {
  /** Threads of the native backend; default the machine's cores. */
  readonly numThreads?: number | undefined;
  /** Storage of unquantised weights; `auto`, the default, keeps each as the checkpoint has it. */
  readonly dtype?: "auto" | "f32" | "f16" | "bf16" | undefined;
  /** Quantisation scheme of a safetensors checkpoint; `auto`, the default, takes the one its configuration names. */
  readonly quantization?: string | undefined;
  /** Storage of keys and values; `auto`, the default, follows the weights (f16 for quantised ones); int8 keeps a scale per token and head. */
  readonly kvCacheDtype?: KvDtype | "auto" | undefined;
  /** Bytes of the KV cache; default 40 % of the free memory, at most 4 GiB. */
  readonly kvCacheMemoryBytes?: number | undefined;
  /** Instead: the share of the memory free after loading, in (0, 1], that the KV cache may take. */
  readonly memoryUtilization?: number | undefined;
  /** Tokens per block; default 16. */
  readonly blockSize?: number | undefined;
  /** Prompt and output tokens together; default what the model and the memory allow. */
  readonly maxModelLen?: number | undefined;
  /** A Jinja template that replaces the checkpoint's. */
  readonly chatTemplate?: string | undefined;
  /** Sampling defaults: `auto`, the default, takes generation_config.json's; `vllm` takes OpenAI's. */
  readonly generationConfig?: "auto" | "vllm" | undefined;
  /** Branch, tag or commit of a hub model. */
  readonly revision?: string | undefined;
  /** Cache of downloaded models; default the one that Python's huggingface_hub uses. */
  readonly downloadDir?: string | undefined;
  /**
   * Keeps weights as they were packed, so that the next start maps them instead and processes share them: a folder, `auto` for
   * `octavo-weights` in Hugging Face's cache, or `off`, the default. Takes as much disk as the model.
   */
  readonly weightCache?: string | undefined;
  /**
   * Reads bf16 weights where they lie in the model's files instead of repacking them, on CPUs with AVX512-BF16: starts copy nothing and
   * processes that serve the same files share them, but many streams are slower. The files must stay as they are. Default false.
   */
  readonly weightsInPlace?: boolean | undefined;
  /** Serve LoRA adapters beside the model: those of `loraModules`, and what is loaded later. Default false. */
  readonly enableLora?: boolean | undefined;
  readonly loraModules?: readonly AdapterSpec[] | undefined;
  /** Adapters that take part in one step at most; default 8. */
  readonly maxLoras?: number | undefined;
  /** Adapters in memory at most; default 64. */
  readonly maxCpuLoras?: number | undefined;
  /** Largest rank of an adapter; default 64. */
  readonly maxLoraRank?: number | undefined;
  /** Guess tokens and check several in one step: changes speed, never tokens. Default off. */
  readonly speculativeConfig?: SpeculativeConfig | undefined;
  /** Make a replica whose weights drifted; needs `enableFaultInjection`, and takes no part in the weight cache. */
  readonly corruptWeights?: WeightCorruption | undefined;
  readonly onProgress?: ((progress: LoadProgress) => void) | undefined;
  /** What the user should know although the model can be served. */
  readonly onWarning?: ((message: string) => void) | undefined;
  /** Ends the loading with `request_cancelled`; what was loaded is freed. */
  readonly signal?: AbortSignal | undefined;
  /** Runs the model on this backend instead of a native one of its own; the caller disposes it, after the model. */
  readonly backend?: Backend | undefined;
}

export interface LoadProgress {
  /** "downloading" or "loading weights" */
  readonly phase: string;
  readonly doneBytes: number;
  readonly totalBytes: number;
  /** While downloading: files, pace and what was there before; what `createProgressBar` draws. */
  readonly download?: DownloadProgress;
}
