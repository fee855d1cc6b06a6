import { availableMemoryBytes } from "@octavo/kernels";
import { OctavoError } from "@octavo/protocol/errors";
import { formatBinaryBytes } from "@octavo/protocol/options";
import type { Checkpoint } from "@octavo/artifacts/checkpoint/checkpoint";
import { loadedBytesOf } from "@octavo/artifacts/checkpoint/tensor-storage";
import type { ResolvedLoadOptions } from "./load-options.js";
import type { OpenedHead } from "./load-head.js";
import type { DraftSource } from "./load-speculation.js";
import { type MemoryPlan, planMemory } from "./memory-plan.js";
import { sequencesOfStep } from "./whole-sequences.js";

/** The KV cache's size on a device that does not say how much memory it has. */
const ownCacheBytes = 1 << 30;

export interface Sizes extends MemoryPlan {
  readonly blockSize: number;
  readonly maxNumSeqs: number;
  readonly maxNumBatchedTokens: number;
}

/** How large the KV cache, the batches and the context are. Decided before weights are packed, so that impossible options fail at once. */
export function planSizes(
  checkpoint: Checkpoint,
  draft: DraftSource | undefined,
  options: ResolvedLoadOptions,
  {
    maxDraftTokens,
    hasOwnMemory,
    imageBytes,
    head,
  }: {
    readonly maxDraftTokens: number;
    readonly hasOwnMemory: boolean;
    /** What reads images takes so much beside. */
    readonly imageBytes: number;
    readonly head: OpenedHead | undefined;
  },
): Sizes {
  const { config, tensors } = checkpoint;
  const { dtype, memoryUtilization, blockSize, maxNumSeqs, maxNumBatchedTokens } = options;
  let weightBytes = 0;
  for (const tensor of tensors.values()) weightBytes += loadedBytesOf(tensor);
  weightBytes += (draft?.weightBytes ?? head?.weightBytes ?? 0) + imageBytes;
  const memoryBytes = availableMemoryBytes();
  const availableBytes = hasOwnMemory ? Infinity : memoryBytes - weightBytes;
  if (availableBytes <= 0 && options.kvCacheMemoryBytes === undefined) {
    throw new OctavoError(
      "out_of_memory",
      `The weights take ${formatBinaryBytes(weightBytes)}, but only ${formatBinaryBytes(memoryBytes)} of memory are available to this process. ` +
        "Free memory, raise the container's limit or take a smaller model or quantisation; " +
        "to try all the same, say with --kv-cache-memory how much the KV cache may take.",
    );
  }
  const shareBytes = memoryUtilization === undefined ? undefined : memoryUtilization * availableBytes;
  const plan = planMemory({
    config: dtype === "auto" || config.dtype === "quantized" ? config : { ...config, dtype },
    blockSize,
    maxNumSeqs: config.encoder === undefined ? maxNumSeqs : sequencesOfStep(options),
    maxModelLen: options.maxModelLen,
    kvCacheDtype: options.kvCacheDtype,
    kvCacheMemoryBytes:
      options.kvCacheMemoryBytes ?? shareBytes ?? (hasOwnMemory ? ownCacheBytes : undefined),
    maxDraftTokens,
    headKvLayers: head?.kvLayers,
    availableBytes: hasOwnMemory ? Number.MAX_SAFE_INTEGER : Math.max(availableBytes, 0),
    ...(hasOwnMemory && { machineBytes: Number.MAX_SAFE_INTEGER }),
  });
  if (plan.isShortened) {
    options.onWarning?.(
      `The KV cache holds one sequence of ${plan.maxModelLen} tokens, so that is the context length; ` +
        `the model could take ${config.maxPositionEmbeddings}. Give the cache more memory to use them.`,
    );
  }
  const { scaling } = config.rope;
  if (scaling.kind === "longrope" && plan.maxModelLen > scaling.originalMaxPositions) {
    options.onWarning?.(
      `Sequences may grow to ${plan.maxModelLen} tokens, so LongRoPE's long factors are in use, which cost short texts some quality. ` +
        `With --max-model-len ${scaling.originalMaxPositions} or less, the short factors are.`,
    );
  }
  return { ...plan, blockSize, maxNumSeqs, maxNumBatchedTokens };
}
