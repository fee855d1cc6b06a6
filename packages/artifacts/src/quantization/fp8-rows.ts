import type { MatrixParts, MatrixRecipe, TensorInfo } from "../checkpoint/checkpoint.js";
import { readTensor } from "../checkpoint/read-tensor.js";

/** Reads rows [first, first + count) of a matrix of FP8 (`fp8.ts`) in single precision, as bytes. */
export function readFloat8Rows(
  recipe: MatrixRecipe,
  { shape: [rows = 1, cols = 1] }: TensorInfo,
): (first: number, count: number) => Promise<Uint8Array> {
  // Of the matrix, this holds the scales alone.
  let whole: Promise<MatrixParts> | undefined;
  return async (first, count) => {
    whole ??= recipe.assemble();
    const { values, scales = new Float32Array(), groupSize = cols } = await whole;
    const codes =
      values instanceof Uint8Array
        ? values.subarray(first * cols, (first + count) * cols)
        : await readTensor({ ...values, offset: values.offset + first * cols, byteLength: count * cols });
    const groups = scales.length / rows;
    const floats = Float32Array.from(codes, (code, at) => {
      const row = first + Math.floor(at / cols);
      return (e4m3[code] ?? 0) * (scales[row * groups + Math.floor((at % cols) / groupSize)] ?? 0);
    });
    return new Uint8Array(floats.buffer);
  };
}

/** The value of each code; the two that are no numbers are NaN. */
const e4m3 = Float32Array.from({ length: 256 }, (_, code) => {
  const [exponent, fraction] = [(code >> 3) & 15, code & 7];
  const magnitude = exponent === 0 ? fraction * 2 ** -9 : (8 + fraction) * 2 ** (exponent - 10);
  return (code < 128 ? 1 : -1) * ((code & 127) === 127 ? Number.NaN : magnitude);
});
