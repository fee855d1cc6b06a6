import { store } from "../formats/half.js";
import { encodeQ2K, encodeQ3K } from "./k-low.js";
import { encodeQ4K, encodeQ5K } from "./k-affine.js";
import { encodeQ6K } from "./k-six.js";
import { encodeIq4Nl, encodeIq4Xs } from "./nonlinear-blocks.js";
import { encodeQ40, encodeQ41, encodeQ50, encodeQ51, encodeQ80 } from "./simple-blocks.js";

/**
 * Writes one block into `target`, zeroed before, and leaves in `values` what the block stands for.
 * @param importance how much an error in each value matters: the mean square of what it is multiplied by
 */
type BlockEncoder = (values: Float32Array, target: DataView, importance?: Float32Array) => void;

/** A tensor type of ggml that Octavo writes. Layouts: ggml-common.h. */
export interface GgmlType {
  readonly name: string;
  /** ggml's number for it. */
  readonly id: number;
  readonly blockElements: number;
  readonly blockBytes: number;
  /** Absent for floats. */
  readonly encode?: BlockEncoder;
}

const floats = { blockElements: 1 } as const;
const small = { blockElements: 32 } as const;
const large = { blockElements: 256 } as const;

export const ggmlTypes = {
  F32: { name: "F32", id: 0, blockBytes: 4, ...floats },
  F16: { name: "F16", id: 1, blockBytes: 2, ...floats },
  BF16: { name: "BF16", id: 30, blockBytes: 2, ...floats },
  Q4_0: { name: "Q4_0", id: 2, blockBytes: 18, encode: encodeQ40, ...small },
  Q4_1: { name: "Q4_1", id: 3, blockBytes: 20, encode: encodeQ41, ...small },
  Q5_0: { name: "Q5_0", id: 6, blockBytes: 22, encode: encodeQ50, ...small },
  Q5_1: { name: "Q5_1", id: 7, blockBytes: 24, encode: encodeQ51, ...small },
  Q8_0: { name: "Q8_0", id: 8, blockBytes: 34, encode: encodeQ80, ...small },
  IQ4_NL: { name: "IQ4_NL", id: 20, blockBytes: 18, encode: encodeIq4Nl, ...small },
  IQ4_XS: { name: "IQ4_XS", id: 23, blockBytes: 136, encode: encodeIq4Xs, ...large },
  Q2_K: { name: "Q2_K", id: 10, blockBytes: 84, encode: encodeQ2K, ...large },
  Q3_K: { name: "Q3_K", id: 11, blockBytes: 110, encode: encodeQ3K, ...large },
  Q4_K: { name: "Q4_K", id: 12, blockBytes: 144, encode: encodeQ4K, ...large },
  Q5_K: { name: "Q5_K", id: 13, blockBytes: 176, encode: encodeQ5K, ...large },
  Q6_K: { name: "Q6_K", id: 14, blockBytes: 210, encode: encodeQ6K, ...large },
} as const satisfies Record<string, GgmlType>;

export type GgmlTypeName = keyof typeof ggmlTypes;
/** One of them, so that its name is known to be one. */
export type WrittenGgmlType = (typeof ggmlTypes)[GgmlTypeName];

export function tensorBytesOf(type: GgmlType, numElements: number): number {
  return (numElements / type.blockElements) * type.blockBytes;
}

/**
 * Values as blocks of a type; `values` are replaced by what the blocks stand for.
 * @param importance of each column, for values that are whole rows
 */
export function encodeGgml(type: GgmlType, values: Float32Array, importance?: Float32Array): Uint8Array {
  const { blockElements, blockBytes, encode } = type;
  if (encode === undefined) {
    const stored = store(values, type.id === 0 ? "f32" : type.id === 1 ? "f16" : "bf16");
    values.set(stored.values);
    return stored.bytes;
  }
  const blocks = values.length / blockElements;
  const out = new Uint8Array(blocks * blockBytes);
  for (let block = 0; block < blocks; block++) {
    const target = new DataView(out.buffer, block * blockBytes, blockBytes);
    const first = block * blockElements;
    const column = importance === undefined ? 0 : first % importance.length;
    encode(
      values.subarray(first, first + blockElements),
      target,
      importance?.subarray(column, column + blockElements),
    );
  }
  return out;
}
