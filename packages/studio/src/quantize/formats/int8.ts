import { viewBytes, type EncodedMatrix } from "../output/output-tensor.js";
import { roundEven } from "./half.js";

/**
 * W8A8 as compressed-tensors' `int-quantized`: weight I8 `[out, in]`, symmetric, weight_scale F32 `[out, 1]`, w = q * s. Activations
 * are quantised while the model runs, one scale per token.
 */
export function encodeInt8(module: string, weight: Float32Array, rows: number, cols: number): EncodedMatrix {
  const codes = new Int8Array(rows * cols);
  const scales = new Float32Array(rows);
  const values = new Float32Array(rows * cols);
  for (let row = 0; row < rows; row++) {
    const start = row * cols;
    let extreme = 0;
    for (let at = start; at < start + cols; at++) extreme = Math.max(extreme, Math.abs(weight[at] ?? 0));
    const scale = extreme === 0 ? 1 : Math.fround(extreme / 127);
    scales[row] = scale;
    for (let at = start; at < start + cols; at++) {
      const code = Math.min(127, Math.max(-127, roundEven((weight[at] ?? 0) / scale)));
      codes[at] = code;
      values[at] = code * scale;
    }
  }
  return {
    tensors: [
      { name: `${module}.weight`, dtype: "I8", shape: [rows, cols], bytes: viewBytes(codes) },
      { name: `${module}.weight_scale`, dtype: "F32", shape: [rows, 1], bytes: viewBytes(scales) },
    ],
    values,
  };
}
