import type { WeightType } from "@octavo/kernels";
import { OctavoError } from "@octavo/protocol";
import type { ModelConfig } from "../models/model-config.js";
import type { Checkpoint, TensorInfo } from "./checkpoint.js";

/** A checkpoint's dtype: the floating-point type most of its bytes are in, or `quantized` once any tensor is. */
export function storageOf(tensors: Iterable<TensorInfo>): ModelConfig["dtype"] {
  const bytes = { f32: 0, f16: 0, bf16: 0 };
  for (const { type, byteLength } of tensors) {
    if (!isFloat(type)) return "quantized";
    bytes[type] += byteLength;
  }
  if (bytes.bf16 >= bytes.f16 && bytes.bf16 >= bytes.f32) return "bf16";
  return bytes.f16 >= bytes.f32 ? "f16" : "f32";
}

function isFloat(type: WeightType): type is "f32" | "f16" | "bf16" {
  return type === "f32" || type === "f16" || type === "bf16";
}

/**
 * The tensor a model cannot do without.
 * @throws OctavoError `artifact_invalid` when it is missing or has another shape
 */
export function requireTensor(checkpoint: Checkpoint, name: string, shape: readonly number[]): TensorInfo {
  const tensor = checkpoint.tensors.get(name);
  if (tensor === undefined) {
    throw new OctavoError(
      "artifact_invalid",
      `${checkpoint.path}: tensor ${JSON.stringify(name)} is missing`,
    );
  }
  if (tensor.shape.length !== shape.length || tensor.shape.some((size, i) => size !== shape[i])) {
    throw new OctavoError(
      "artifact_invalid",
      `${tensor.path}: tensor ${JSON.stringify(name)} has the shape [${tensor.shape.join(", ")}]; the config asks for [${shape.join(", ")}]`,
    );
  }
  return tensor;
}
