import { halfBitsOf, roundToHalf } from "../formats/half.js";
import { extremeOf, importanceWeights } from "./k-search.js";

/** kvalues_iq4nl of ggml-common.h */
const levels = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113] as const;

const middle = 256;
const last = 2 * middle - 1;
const codeAt = Uint8Array.from({ length: last + 1 }, (_, at) =>
  levels.findIndex((level, i) => i === 15 || at - middle <= level + levels[i + 1]!),
);
const counted = new Float64Array(32);
const products = new Float64Array(32);
const codes = new Uint8Array(32);
const scales = new Float64Array(8);

/** d: f16; nibbles as Q4_0. w = d levels[q] */
export function encodeIq4Nl(values: Float32Array, target: DataView, importance?: Float32Array): void {
  const scale = fitLevels(values, importance && importanceWeights(values, importance));
  target.setUint16(0, halfBitsOf(scale), true);
  writeLevels(values, roundToHalf(scale), target, 2);
}

/** d: f16; eight 6-bit scales, their high bits in a u16 before their nibbles; 128 bytes of nibbles. w = d (scale - 32) levels[q], over sub-blocks of 32 */
export function encodeIq4Xs(values: Float32Array, target: DataView, importance?: Float32Array): void {
  const important = importance && importanceWeights(values, importance);
  for (let sub = 0; sub < 8; sub++) {
    const [first, end] = [sub * 32, sub * 32 + 32];
    scales[sub] = fitLevels(values.subarray(first, end), important?.subarray(first, end));
  }
  // The scale of largest magnitude takes the lowest code.
  const unit = extremeOf(scales) / -32;
  const d = roundToHalf(unit);
  target.setUint16(0, halfBitsOf(unit), true);
  let high = 0;
  for (let sub = 0; sub < 8; sub++) {
    const code = unit === 0 ? 0 : Math.min(31, Math.max(-32, Math.round(scales[sub]! / unit)));
    const stored = code + 32;
    high |= (stored >> 4) << (2 * sub);
    const at = 4 + (sub >> 1);
    target.setUint8(at, target.getUint8(at) | ((stored & 15) << (4 * (sub & 1))));
    writeLevels(values.subarray(sub * 32, sub * 32 + 32), d * code, target, 8 + sub * 16);
  }
  target.setUint16(2, high, true);
}

/** The scale of the best of 15 roundings of 32 values; without weights, values count by their squares. */
function fitLevels(values: Float32Array, weights: Float64Array | undefined): number {
  const extreme = extremeOf(values);
  if (extreme === 0) return 0;
  for (let i = 0; i < 32; i++) {
    const value = values[i]!;
    counted[i] = weights?.[i] ?? value * value;
    products[i] = counted[i]! * value;
  }
  let bestScale = 0;
  let best = -Infinity;
  for (let attempt = -7; attempt <= 7; attempt++) {
    const inverse = (attempt + levels[0]) / extreme;
    let sumXQ = 0;
    let sumQ2 = 0;
    for (let i = 0; i < 32; i++) {
      const level = levels[nearest(inverse * values[i]!)]!;
      sumXQ += products[i]! * level;
      sumQ2 += counted[i]! * level * level;
    }
    if (sumQ2 > 0 && sumXQ * sumXQ > best * sumQ2) {
      bestScale = sumXQ / sumQ2;
      best = bestScale * sumXQ;
    }
  }
  return bestScale;
}

/** 32 values as nibbles under a scale; element j is in the low nibble of byte j, element j + 16 in the high one. */
function writeLevels(values: Float32Array, scale: number, target: DataView, offset: number): void {
  const inverse = scale === 0 ? 0 : 1 / scale;
  for (let i = 0; i < 32; i++) codes[i] = nearest(inverse * values[i]!);
  for (let i = 0; i < 16; i++) target.setUint8(offset + i, codes[i]! | (codes[i + 16]! << 4));
  for (let i = 0; i < 32; i++) values[i] = scale * levels[codes[i]!]!;
}

/** Borders between levels are whole or half numbers, so that a value's place among them is that of twice the value, rounded up. */
function nearest(value: number): number {
  const at = Math.ceil(2 * value) + middle;
  return codeAt[at < 0 ? 0 : at > last ? last : at]!;
}
