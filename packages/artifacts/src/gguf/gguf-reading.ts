import type { ModelConfig } from "../program/model-config.js";
import type { TensorInfo } from "../checkpoint/checkpoint.js";
import type { GgufArchitecture } from "./gguf-architectures.js";
import { findGgufArchitecture, readGgufConfig, type RopeFactors } from "./gguf-config.js";
import type { GgufMetadata } from "./gguf-file.js";
import type { GgufValue } from "./write-gguf-header.js";

/** A GGUF file that is to be written. */
export interface GgufToBe {
  /** Named in errors. */
  readonly path: string;
  readonly metadata: Readonly<Record<string, GgufValue>>;
  /** Under Hugging Face's names. */
  readonly tensors: ReadonlyMap<string, TensorInfo>;
  readonly ropeFactors: RopeFactors;
}

/** What a reader will take a file for that is to be written, and how it names a layer's tensors. */
export function readGgufToBe(
  file: GgufToBe,
  supported: readonly string[],
): { readonly config: ModelConfig; readonly architecture: GgufArchitecture } {
  const { path, tensors, ropeFactors } = file;
  const metadata: GgufMetadata = new Map(
    Object.entries(file.metadata).map(([key, value]) => [key, asRead(value)]),
  );
  const architecture = findGgufArchitecture(path, metadata, supported);
  const config = readGgufConfig({ path, metadata, tensors, ropeFactors, architecture, dtype: "quantized" });
  return { config, architecture };
}

/** As `GgufMetadata` holds it. */
function asRead(value: GgufValue): unknown {
  if (value.type === "f32") return Math.fround(value.value);
  if (value.type !== "array") return value.value;
  if (value.of === "i32") return Int32Array.from(value.value as readonly number[]);
  return value.of === "f32" ? Float32Array.from(value.value as readonly number[]) : value.value;
}
