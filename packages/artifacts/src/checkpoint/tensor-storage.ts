import type { WeightType } from "@octavo/kernels";
import type { ModelConfig } from "../program/model-config.js";
import type { TensorInfo } from "./checkpoint.js";

/** A checkpoint's dtype: the floating-point type most of its bytes are in, or `quantized` once any tensor is. */
export function storageOf(tensors: Iterable<TensorInfo>): ModelConfig["dtype"] {
  const bytes = { f32: 0, f16: 0, bf16: 0 };
  for (const { type, byteLength } of tensors) {
    if (!isFloatType(type)) return "quantized";
    bytes[type] += byteLength;
  }
  if (bytes.bf16 >= bytes.f16 && bytes.bf16 >= bytes.f32) return "bf16";
  return bytes.f16 >= bytes.f32 ? "f16" : "f32";
}

/** What a tensor takes in memory. */
export function loadedBytesOf({
  byteLength,
  loadedBytes = byteLength,
}: Pick<TensorInfo, "byteLength" | "loadedBytes">): number {
  return loadedBytes;
}

/** Storage types of unquantised tensors. */
export type FloatType = "f32" | "f16" | "bf16";

export function isFloatType(type: WeightType): type is FloatType {
  return type === "f32" || type === "f16" || type === "bf16";
}

/** A hint for renamed tensors: up to three names with the same ending. */
export function closestNames(name: string, names: Iterable<string>): string {
  const tail = name.split(".").slice(-2).join(".");
  const alike: string[] = [];
  for (const other of names) {
    if (other.endsWith(tail)) alike.push(`"${other}"`);
    if (alike.length === 3) break;
  }
  return alike.length === 0 ? "" : `It has ${alike.join(", ")}. `;
}
