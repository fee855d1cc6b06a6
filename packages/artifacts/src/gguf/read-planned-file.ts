import type { ModelConfig } from "../program/model-config.js";
import type { TensorInfo } from "../checkpoint/checkpoint.js";
import type { ModelFamily } from "../program/model-family.js";
import { findGgufFamily, readGgufConfig, type RopeFactors } from "./config.js";
import type { GgufMetadata } from "./file.js";
import type { GgufValue } from "./write-header.js";

/** A GGUF file that is to be written. */
interface GgufToBe {
  /** Named in errors. */
  readonly path: string;
  readonly metadata: Readonly<Record<string, GgufValue>>;
  /** Under Hugging Face's names. */
  readonly tensors: ReadonlyMap<string, TensorInfo>;
  readonly ropeFactors: RopeFactors;
}

/** The configuration that a reader of the file, once written, will see. */
export function readGgufToBe(file: GgufToBe): { readonly config: ModelConfig; readonly family: ModelFamily } {
  const { path, tensors, ropeFactors } = file;
  const metadata: GgufMetadata = new Map(
    Object.entries(file.metadata).map(([key, value]) => [key, asRead(value)]),
  );
  const family = findGgufFamily(path, metadata);
  return {
    config: readGgufConfig({ path, metadata, tensors, ropeFactors, family, dtype: "quantized" }),
    family,
  };
}

/** As `GgufMetadata` holds it. */
function asRead(value: GgufValue): unknown {
  if (value.type === "f32") return Math.fround(value.value);
  if (value.type !== "array") return value.value;
  if (value.of === "i32") return Int32Array.from(value.value as readonly number[]);
  return value.of === "f32" ? Float32Array.from(value.value as readonly number[]) : value.value;
}
