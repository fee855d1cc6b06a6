import { availableMemoryBytes, type KvDtype } from "@octavo/kernels";
import { OctavoError } from "@octavo/protocol/errors";
import { type KvShape, planKvCache } from "../kv-cache/plan-kv-cache.js";
import type { ModelConfig } from "@octavo/artifacts/program/model-config";

export interface MemoryRequest {
  readonly config: ModelConfig;
  readonly blockSize: number;
  readonly maxNumSeqs: number;
  /** undefined takes the model's own limit, or what the memory holds where that is less. */
  readonly maxModelLen: number | undefined;
  readonly kvCacheDtype: KvDtype | "auto";
  readonly kvCacheMemoryBytes: number | undefined;
  /** Free memory in bytes; asked of the system when absent. */
  readonly availableBytes?: number | undefined;
}

export interface MemoryPlan {
  readonly kv: KvShape;
  readonly numBlocks: number;
  readonly maxModelLen: number;
  /** True when the model could take longer sequences than the memory holds. */
  readonly isShortened: boolean;
}

/** Decides the context length and the blocks of the KV cache. Throws `invalid_option` or `out_of_memory`. */
export function planMemory(request: MemoryRequest): MemoryPlan {
  const { config, blockSize, maxNumSeqs, kvCacheMemoryBytes } = request;
  const limit = config.maxPositionEmbeddings;
  if (request.maxModelLen !== undefined && request.maxModelLen > limit) {
    throw new OctavoError(
      "invalid_option",
      `max_model_len is ${request.maxModelLen}, but the model was made for at most ${limit} positions.`,
      { param: "max_model_len" },
    );
  }
  const kv = kvShapeOf(config, request.kvCacheDtype);
  const memory = {
    ...kv,
    blockSize,
    kvCacheMemoryBytes,
    availableBytes: request.availableBytes ?? availableMemoryBytes(),
  };
  // Asked for one token by any number of sequences, the planner gives all blocks that the memory holds.
  const holds =
    planKvCache({ ...memory, maxModelLen: 1, maxNumSeqs: Number.MAX_SAFE_INTEGER }).numBlocks * blockSize;
  const maxModelLen = request.maxModelLen ?? Math.min(limit, holds);
  const { numBlocks } = planKvCache({ ...memory, maxModelLen, maxNumSeqs });
  return {
    kv,
    numBlocks,
    maxModelLen,
    isShortened: request.maxModelLen === undefined && maxModelLen < limit,
  };
}

/** What a model keeps of a token. */
export function kvShapeOf(config: ModelConfig, dtype: KvDtype | "auto"): KvShape {
  const { numLayers, numKvHeads, headDim } = config;
  return { numLayers, numKvHeads, headDim, dtype: dtype === "auto" ? defaultKvDtype(config) : dtype };
}

/** As exact as the weights are; quantised files were made for llama.cpp, which keeps f16. */
function defaultKvDtype(config: ModelConfig): KvDtype {
  return config.dtype === "quantized" ? "f16" : config.dtype;
}
