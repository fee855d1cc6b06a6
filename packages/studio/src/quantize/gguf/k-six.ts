import { halfBitsOf, roundToHalf } from "../formats/half.js";
import { extremeOf, fitSymmetric, importanceWeights } from "./k-search.js";

const scales = new Float64Array(16);
const codes = new Uint8Array(256);

/** 128 bytes of low nibbles, 64 of high bit pairs, 16 signed scales, d: f16. w = d scale (q - 32), over groups of 16 */
export function encodeQ6K(values: Float32Array, target: DataView, importance?: Float32Array): void {
  const important = importance && importanceWeights(values, importance);
  for (let group = 0; group < 16; group++) {
    const [first, end] = [group * 16, group * 16 + 16];
    scales[group] = fitSymmetric(values.subarray(first, end), 32, important?.subarray(first, end));
  }
  const unit = extremeOf(scales) / -128;
  const d = roundToHalf(unit);
  target.setUint16(208, halfBitsOf(unit), true);
  for (let group = 0; group < 16; group++) {
    scales[group] = unit === 0 ? 0 : Math.min(127, Math.round(scales[group]! / unit));
    target.setInt8(192 + group, scales[group]!);
  }
  for (let i = 0; i < 256; i++) {
    const scale = d * scales[i >> 4]!;
    const code = scale === 0 ? 32 : Math.min(31, Math.max(-32, Math.round(values[i]! / scale))) + 32;
    codes[i] = code;
    values[i] = scale * (code - 32);
  }
  for (let half = 0; half < 2; half++) {
    for (let i = 0; i < 32; i++) {
      const first = half * 128 + i;
      const [a, b, c, e] = [codes[first]!, codes[first + 32]!, codes[first + 64]!, codes[first + 96]!];
      target.setUint8(half * 64 + i, (a & 15) | ((c & 15) << 4));
      target.setUint8(half * 64 + 32 + i, (b & 15) | ((e & 15) << 4));
      target.setUint8(128 + half * 32 + i, (a >> 4) | ((b >> 4) << 2) | ((c >> 4) << 4) | ((e >> 4) << 6));
    }
  }
}
