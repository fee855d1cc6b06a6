import { totalmem } from "node:os";
import { availableMemoryBytes, type KvDtype, type KvLayerShape, kvTokenBytes } from "@octavo/kernels";
import { OctavoError } from "@octavo/protocol/errors";
import { formatBinaryBytes } from "@octavo/protocol/options";

/** The shape of one token position of the KV cache. */
export interface KvShape {
  readonly layers: readonly KvLayerShape[];
  readonly dtype: KvDtype;
}

/** What a KV cache must hold, and the memory that it may take. Sizes in bytes, lengths in tokens. */
export interface KvCacheRequest extends KvShape {
  readonly blockSize: number;
  readonly maxModelLen: number;
  readonly maxNumSeqs: number;
  /** Size of a slot of recurrent state; 0 if the model keeps none. */
  readonly stateBytes?: number;
  /** Bytes to use; default 40 % of the free memory, at most 4 GiB, and no more than all sequences could fill. */
  readonly kvCacheMemoryBytes?: number | undefined;
  /** Free memory in bytes; default as reported by the system. */
  readonly availableBytes?: number | undefined;
  /** All memory that this process may ever use, in bytes; default as reported by the system. */
  readonly machineBytes?: number | undefined;
}

/** The size of a KV cache. */
export interface KvCachePlan {
  readonly numBlocks: number;
  readonly bytesPerBlock: number;
  /** Slots of recurrent state; 0 where the model keeps none. */
  readonly numStateSlots: number;
  /** Total size of blocks and slots. */
  readonly byteLength: number;
}

/** Slots beyond one for each sequence, for copies that later requests start from. */
const spareStateSlots = 64;
/** A sequence's own, and a copy. */
const fewestStateSlots = 2;

const gibibyte = 2 ** 30;

/**
 * Divides memory into blocks and, at most half of it, into slots of recurrent state. The pool always holds at least one sequence of `maxModelLen` tokens, since a smaller one could
 * accept a request that it can never complete. Throws `out_of_memory` or `invalid_option`, saying what to set.
 */
export function planKvCache(request: KvCacheRequest): KvCachePlan {
  const { layers, dtype, blockSize, maxModelLen, maxNumSeqs, kvCacheMemoryBytes, stateBytes = 0 } = request;
  const bytesPerBlock = kvTokenBytes(layers, dtype) * blockSize;
  const blocksPerSequence = Math.ceil(maxModelLen / blockSize);
  if (kvCacheMemoryBytes !== undefined && !(Number.isFinite(kvCacheMemoryBytes) && kvCacheMemoryBytes > 0)) {
    throw new OctavoError(
      "invalid_option",
      `the KV cache's memory must be a positive number of bytes, not ${kvCacheMemoryBytes}`,
      {
        param: "kv_cache_memory",
      },
    );
  }
  const machineBytes = request.machineBytes ?? totalMemoryBytes();
  if (kvCacheMemoryBytes !== undefined && kvCacheMemoryBytes > machineBytes) {
    throw new OctavoError(
      "invalid_option",
      `the KV cache may not take ${formatBinaryBytes(kvCacheMemoryBytes)}: this process has ${formatBinaryBytes(machineBytes)} of memory for everything`,
      { param: "kv_cache_memory" },
    );
  }
  const available = request.availableBytes ?? availableMemoryBytes();
  const bytes = kvCacheMemoryBytes ?? Math.min(4 * gibibyte, available * 0.4);
  const bytesForStates = Math.min(bytes / 2, bytes - blocksPerSequence * bytesPerBlock);
  const numStateSlots =
    stateBytes === 0
      ? 0
      : Math.max(
          fewestStateSlots,
          Math.min(maxNumSeqs + spareStateSlots, Math.floor(bytesForStates / stateBytes)),
        );
  let numBlocks = Math.max(0, Math.floor((bytes - numStateSlots * stateBytes) / bytesPerBlock));
  const least = blocksPerSequence * bytesPerBlock + fewestStateSlots * stateBytes;
  if (numBlocks < blocksPerSequence) {
    const fitting = numBlocks * blockSize;
    const source =
      kvCacheMemoryBytes === undefined
        ? `the default share of the ${formatBinaryBytes(available)} free`
        : "given";
    throw new OctavoError(
      kvCacheMemoryBytes === undefined ? "out_of_memory" : "invalid_option",
      `one sequence of ${maxModelLen} tokens needs ${formatBinaryBytes(least)} of KV cache${stateBytes === 0 ? "" : " and recurrent state"}, but there are only ` +
        `${formatBinaryBytes(bytes)} (${source}). Set --kv-cache-memory to at least ${least} bytes` +
        (fitting > 0 ? `, or --max-model-len to at most ${fitting}.` : "."),
      { param: kvCacheMemoryBytes === undefined ? "max_model_len" : "kv_cache_memory" },
    );
  }
  if (kvCacheMemoryBytes === undefined) numBlocks = Math.min(numBlocks, blocksPerSequence * maxNumSeqs);
  const byteLength = numBlocks * bytesPerBlock + numStateSlots * stateBytes;
  return { numBlocks, bytesPerBlock, numStateSlots, byteLength };
}

/** The machine's memory, or less where a control group limits this process. */
function totalMemoryBytes(): number {
  // 0 where it is unknown, and a number beyond any machine where there is no limit.
  return Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY);
}
