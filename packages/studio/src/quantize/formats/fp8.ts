import { e4m3Values } from "@octavo/artifacts/program/float-conversion";
import { viewBytes, type EncodedMatrix } from "../output/output-tensor.js";
import { roundEven } from "./half.js";

/** Largest magnitude of E4M3. */
const largest = 448;
/** One sign, four exponent bits of bias 7, three of mantissa: ulp of values below 2^-6, which are subnormal. */
const smallestStep = 2 ** -9;
const smallestNormal = 2 ** -6;
/** Steps of 2^exponent / 8 in 1, by exponent from -6 on. */
const stepsPerUnit = Float64Array.from({ length: 15 }, (_, i) => 2 ** (9 - i));

/** A double's exponent stands in its upper word, which is the second of two on the little-endian machines that Octavo runs on. */
const scratch = new Float64Array(1);
const scratchWords = new Uint32Array(scratch.buffer);

/**
 * FP8 as compressed-tensors' `float-quantized`: weight F8_E4M3 `[out, in]`, weight_scale F32 `[out, 1]`, w = q * s. Activations are
 * quantised while the model runs, one scale per token.
 */
export function encodeFp8(module: string, weight: Float32Array, rows: number, cols: number): EncodedMatrix {
  const codes = new Uint8Array(rows * cols);
  const scales = new Float32Array(rows);
  const values = new Float32Array(rows * cols);
  for (let row = 0; row < rows; row++) {
    const start = row * cols;
    let extreme = 0;
    for (let at = start; at < start + cols; at++) extreme = Math.max(extreme, Math.abs(weight[at] ?? 0));
    // A row of zeros keeps a scale that can be divided by.
    const scale = extreme === 0 ? 1 : Math.fround(extreme / largest);
    scales[row] = scale;
    for (let at = start; at < start + cols; at++) {
      const code = toE4m3((weight[at] ?? 0) / scale);
      codes[at] = code;
      values[at] = e4m3Values[code]! * scale;
    }
  }
  return {
    tensors: [
      { name: `${module}.weight`, dtype: "F8_E4M3", shape: [rows, cols], bytes: codes },
      { name: `${module}.weight_scale`, dtype: "F32", shape: [rows, 1], bytes: viewBytes(scales) },
    ],
    values,
  };
}

/** The nearest code, ties to even; larger magnitudes take the largest. */
export function toE4m3(value: number): number {
  const sign = value < 0 || Object.is(value, -0) ? 0x80 : 0;
  const magnitude = Math.min(Math.abs(value), largest);
  if (magnitude < smallestNormal) return sign | roundEven(magnitude / smallestStep);
  scratch[0] = magnitude;
  const exponent = (scratchWords[1]! >>> 20) - 1023;
  // From 8 eighths of the power of two on: the leading one is not stored.
  const eighths = roundEven(magnitude * stepsPerUnit[exponent + 6]!) - 8;
  return sign | Math.min(((exponent + 7) << 3) + eighths, 0x7e);
}
