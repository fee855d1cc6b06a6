import { viewBytes, type EncodedMatrix } from "../output/output-tensor.js";
import { store } from "./half.js";
import { groupValues, type IntegerGroups } from "./integer-groups.js";

/** Where in its word the nibble of output 8c + i lies, in bits. */
const shifts: readonly number[] = [0, 4, 1, 5, 2, 6, 3, 7].map((nibble) => nibble * 4);

/**
 * AutoAWQ's GEMM layout: qweight I32 `[in, out / 8]`, qzeros I32 `[in / g, out / 8]`, scales F16 `[in / g, out]`; nibble i of word c
 * holds output 8c + [0, 2, 4, 6, 1, 3, 5, 7][i]. w = (q - z) * s
 */
export function packAwq(module: string, matrix: IntegerGroups): EncodedMatrix {
  const { rows: outputs, cols: inputs, groupSize, codes, scales, zeros } = matrix;
  const groups = inputs / groupSize;
  return {
    tensors: [
      {
        name: `${module}.qweight`,
        dtype: "I32",
        shape: [inputs, outputs / 8],
        bytes: viewBytes(packColumns(codes, outputs, inputs)),
      },
      {
        name: `${module}.qzeros`,
        dtype: "I32",
        shape: [groups, outputs / 8],
        bytes: viewBytes(packColumns(zeros, outputs, groups)),
      },
      {
        name: `${module}.scales`,
        dtype: "F16",
        shape: [groups, outputs],
        bytes: store(transpose(scales, outputs, groups), "f16").bytes,
      },
    ],
    values: groupValues(matrix),
  };
}

/** `[outputs, cols]` nibbles as `[cols, outputs / 8]` words. */
function packColumns(codes: Uint8Array, outputs: number, cols: number): Uint32Array {
  const wordsPerRow = outputs / 8;
  const words = new Uint32Array(cols * wordsPerRow);
  for (let output = 0; output < outputs; output++) {
    const shift = shifts[output & 7]!;
    const word = output >>> 3;
    const start = output * cols;
    for (let col = 0; col < cols; col++) {
      const at = col * wordsPerRow + word;
      words[at] = words[at]! | (codes[start + col]! << shift);
    }
  }
  return words;
}

/** `[rows, cols]` as `[cols, rows]`. */
export function transpose(values: Float32Array, rows: number, cols: number): Float32Array {
  const out = new Float32Array(values.length);
  for (let row = 0; row < rows; row++) {
    for (let col = 0; col < cols; col++) out[col * rows + row] = values[row * cols + col]!;
  }
  return out;
}
