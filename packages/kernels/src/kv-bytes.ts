import type { KvDtype } from "./backend.js";

/** The types a KV cache knows. */
export const kvDtypes: readonly KvDtype[] = ["f32", "f16", "bf16", "int8"];

/** Bytes of one token's key, or value, of one kv head: its elements and, in an int8 cache, their f32 scale. */
export function kvHeadBytes(dtype: KvDtype, headDim: number): number {
  switch (dtype) {
    case "f32":
      return headDim * 4;
    case "f16":
    case "bf16":
      return headDim * 2;
    case "int8":
      return headDim + 4;
  }
}
