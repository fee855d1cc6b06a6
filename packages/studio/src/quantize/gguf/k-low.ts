import { halfBitsOf, roundToHalf } from "../formats/half.js";
import { type AffineSearch, descendSymmetric, extremeOf, fitAffine, importanceWeights } from "./k-search.js";

const q2Search: AffineSearch = { most: 3, first: -0.5, steps: 15, absolute: true };

const q2Important: AffineSearch = { most: 3, first: -0.9, steps: 18, absolute: false };

const weights = new Float64Array(16);
const scales = new Float64Array(16);
const minima = new Float64Array(16);
const codes = new Uint8Array(256);
const fit = { scale: 0, minimum: 0 };

/** 16 bytes of scale and minimum nibbles; 64 bytes of bit pairs; d, dmin: f16. w = d scale q - dmin min, over groups of 16 */
export function encodeQ2K(values: Float32Array, target: DataView, importance?: Float32Array): void {
  const important = importance && importanceWeights(values, importance);
  for (let group = 0; group < 16; group++) {
    const part = values.subarray(group * 16, group * 16 + 16);
    for (let i = 0; i < 16; i++) weights[i] = important?.[group * 16 + i] ?? Math.abs(part[i]!);
    fitAffine(part, weights, important === undefined ? q2Search : q2Important, fit);
    scales[group] = fit.scale;
    minima[group] = fit.minimum;
  }
  const scaleUnit = Math.max(...scales) / 15;
  const minimumUnit = Math.max(...minima) / 15;
  for (let group = 0; group < 16; group++) {
    scales[group] = scaleUnit > 0 ? Math.min(15, Math.round(scales[group]! / scaleUnit)) : 0;
    minima[group] = minimumUnit > 0 ? Math.min(15, Math.round(minima[group]! / minimumUnit)) : 0;
    target.setUint8(group, scales[group]! | (minima[group]! << 4));
  }
  target.setUint16(80, halfBitsOf(scaleUnit), true);
  target.setUint16(82, halfBitsOf(minimumUnit), true);
  const d = roundToHalf(scaleUnit);
  const dmin = roundToHalf(minimumUnit);
  for (let i = 0; i < 256; i++) {
    const scale = d * scales[i >> 4]!;
    const minimum = dmin * minima[i >> 4]!;
    const code = scale === 0 ? 0 : Math.min(3, Math.max(0, Math.round((values[i]! + minimum) / scale)));
    codes[i] = code;
    values[i] = scale * code - minimum;
  }
  writePairs(target, 16, (i) => codes[i]!);
}

/** 32 bytes of third bits; 64 of bit pairs; 16 scales of 6 bits in 12 bytes; d: f16. w = d (scale - 32) (q - 4), groups of 16 */
export function encodeQ3K(values: Float32Array, target: DataView, importance?: Float32Array): void {
  const important = importance && importanceWeights(values, importance);
  for (let group = 0; group < 16; group++) {
    const [first, end] = [group * 16, group * 16 + 16];
    scales[group] = descendSymmetric(values.subarray(first, end), 4, important?.subarray(first, end));
  }
  // The scale of largest magnitude takes the lowest code.
  const unit = extremeOf(scales) / -32;
  const d = roundToHalf(unit);
  target.setUint16(108, halfBitsOf(unit), true);
  for (let group = 0; group < 16; group++) {
    const code = unit === 0 ? 0 : Math.min(31, Math.max(-32, Math.round(scales[group]! / unit)));
    scales[group] = code;
    const stored = code + 32;
    const low = 96 + (group & 7);
    const high = 104 + (group & 3);
    target.setUint8(low, target.getUint8(low) | ((stored & 15) << (group < 8 ? 0 : 4)));
    target.setUint8(high, target.getUint8(high) | ((stored >> 4) << (2 * (group >> 2))));
  }
  for (let i = 0; i < 256; i++) {
    const scale = d * scales[i >> 4]!;
    const code = scale === 0 ? 4 : Math.min(3, Math.max(-4, Math.round(values[i]! / scale))) + 4;
    codes[i] = code;
    values[i] = scale * (code - 4);
    target.setUint8(i & 31, target.getUint8(i & 31) | ((code >> 2) << (i >> 5)));
  }
  writePairs(target, 32, (i) => codes[i]! & 3);
}

/** 64 bytes of bit pairs: element 128n + 32j + l in bits 2j of byte 32n + l. */
function writePairs(target: DataView, offset: number, pairOf: (index: number) => number): void {
  for (let i = 0; i < 256; i++) {
    const at = offset + (i >> 7) * 32 + (i & 31);
    target.setUint8(at, target.getUint8(at) | (pairOf(i) << (2 * ((i >> 5) & 3))));
  }
}
