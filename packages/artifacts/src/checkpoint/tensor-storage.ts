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

/** Storage types of unquantised tensors. */
export type FloatType = "f32" | "f16" | "bf16";

export function isFloatType(type: WeightType): type is FloatType {
  return type === "f32" || type === "f16" || type === "bf16";
}
