import { writeFileSync } from "node:fs";
import {
  defaultGgufAlignment,
  encodeGgufHeader as encodeHeader,
  type GgufValue,
} from "../gguf/write-header.js";
import type { WrittenType } from "./quantize.js";
import { tensorBytes, type TensorToWrite } from "./write-safetensors.js";

export type { GgufValue } from "../gguf/write-header.js";

interface GgufHeaderToWrite {
  readonly metadata: Readonly<Record<string, GgufValue>>;
  /** Under GGUF's names, shapes outermost first. */
  readonly tensors: readonly GgufTensorInfo[];
  readonly alignment?: number;
  readonly version?: number;
}

interface GgufTensorInfo {
  readonly name: string;
  readonly type: WrittenType;
  readonly shape: readonly number[];
  readonly byteLength: number;
}

export interface GgufToWrite extends Omit<GgufHeaderToWrite, "tensors"> {
  readonly tensors: readonly TensorToWrite[];
}

const tensorTypes = {
  f32: 0,
  f16: 1,
  q4_0: 2,
  q5_0: 6,
  q8_0: 8,
  q4_k: 12,
  q5_k: 13,
  q6_k: 14,
  bf16: 30,
} as const satisfies Record<WrittenType, number>;

/** A little-endian GGUF file's bytes, tensors in the order given. */
export function encodeGguf(file: GgufToWrite): Uint8Array {
  const alignment = file.alignment ?? defaultGgufAlignment;
  const bytes = file.tensors.map(tensorBytes);
  const tensors = file.tensors.map(({ name, type, shape }, index) => ({
    name,
    type,
    shape,
    byteLength: bytes[index]?.byteLength ?? 0,
  }));
  const data = bytes.flatMap((tensor) => {
    const rest = tensor.byteLength % alignment;
    return rest === 0 ? [tensor] : [tensor, Buffer.alloc(alignment - rest)];
  });
  return Buffer.concat([encodeTestHeader({ ...file, tensors }), ...data]);
}

/** All that stands before the tensors' bytes, which follow in order, each padded to the alignment (32 by default). */
export function encodeTestHeader(file: GgufHeaderToWrite): Uint8Array {
  const tensors = file.tensors.map((tensor) => ({ ...tensor, typeId: tensorTypes[tensor.type] }));
  return encodeHeader({ ...file, tensors });
}

export function writeGguf(path: string, file: GgufToWrite): void {
  writeFileSync(path, encodeGguf(file));
}
