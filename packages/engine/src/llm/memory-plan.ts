import {
  availableMemoryBytes,
  type KvDtype,
  type KvLayerShape,
  kvLayersOf,
  type StateSpec,
  stateWidths,
} from "@octavo/kernels";
import { planModel } from "@octavo/artifacts/program/registry";
import { OctavoError } from "@octavo/protocol/errors";
import { type KvShape, planKvCache } from "../kv-cache/plan-kv-cache.js";
import type { ModelConfig } from "@octavo/artifacts/program/model-config";

export interface MemoryRequest {
  readonly config: ModelConfig;
  readonly blockSize: number;
  readonly maxNumSeqs: number;
  /** Undefined takes the model's limit, or what fits in memory if that is less. */
  readonly maxModelLen: number | undefined;
  readonly kvCacheDtype: KvDtype | "auto";
  readonly kvCacheMemoryBytes: number | undefined;
  /** Tokens that a step may compute and take back: room for them comes with each slot of recurrent state. */
  readonly maxDraftTokens?: number;
  /** A drafting head's layers of keys and values, behind the model's. */
  readonly headKvLayers?: readonly KvLayerShape[] | undefined;
  /** Free memory in bytes; asked of the system when absent. */
  readonly availableBytes?: number | undefined;
  /** What the device has in all; that of this process when absent. */
  readonly machineBytes?: number | undefined;
}

export interface MemoryPlan {
  readonly kv: KvShape;
  /** Undefined where the model keeps no recurrent state. */
  readonly states: StateSpec | undefined;
  readonly numBlocks: number;
  readonly maxModelLen: number;
  /** True when the model could take longer sequences than the memory holds. */
  readonly isShortened: boolean;
}

/** Decides the context length and the blocks of the KV cache. Throws `invalid_option` or `out_of_memory`. */
export function planMemory(request: MemoryRequest): MemoryPlan {
  const { config, blockSize, maxNumSeqs, kvCacheMemoryBytes, maxDraftTokens = 0 } = request;
  const limit = config.maxPositionEmbeddings;
  if (request.maxModelLen !== undefined && request.maxModelLen > limit) {
    throw new OctavoError(
      "invalid_option",
      `max_model_len is ${request.maxModelLen}, but the model was made for at most ${limit} positions.`,
      { param: "max_model_len" },
    );
  }
  const own = kvShapeOf(config, request.kvCacheDtype);
  const kv = { ...own, layers: [...own.layers, ...(request.headKvLayers ?? [])] };
  const widths = stateWidthsOf(config, maxDraftTokens);
  const memory = {
    ...kv,
    stateBytes: 4 * widths.reduce((sum, width) => sum + width, 0),
    blockSize,
    kvCacheMemoryBytes,
    availableBytes: request.availableBytes ?? availableMemoryBytes(),
    machineBytes: request.machineBytes,
  };
  // For one token and any number of sequences, the planner returns all blocks that fit in memory.
  const holds =
    planKvCache({ ...memory, maxModelLen: 1, maxNumSeqs: Number.MAX_SAFE_INTEGER }).numBlocks * blockSize;
  const maxModelLen = request.maxModelLen ?? Math.min(limit, holds);
  const { numBlocks, numStateSlots: numSlots } = planKvCache({ ...memory, maxModelLen, maxNumSeqs });
  return {
    kv,
    states: widths.length === 0 ? undefined : { numSlots, maxDraftTokens, widths },
    numBlocks,
    maxModelLen,
    isShortened: request.maxModelLen === undefined && maxModelLen < limit,
  };
}

/** The KV cache entry of a token. */
export function kvShapeOf(config: ModelConfig, dtype: KvDtype | "auto"): KvShape {
  return {
    layers: kvLayersOf(planModel(config).ops),
    dtype: dtype === "auto" ? defaultKvDtype(config) : dtype,
  };
}

/** Floats that each recurrent op of the model keeps of a sequence. */
function stateWidthsOf(config: ModelConfig, maxDraftTokens: number): readonly number[] {
  if (config.recurrence === undefined) return [];
  const { ops, buffers } = planModel(config);
  return stateWidths(ops, buffers, maxDraftTokens);
}

/** The weights' type; f16 for quantised weights, as in llama.cpp. */
function defaultKvDtype(config: ModelConfig): KvDtype {
  return config.dtype === "quantized" ? "f16" : config.dtype;
}
