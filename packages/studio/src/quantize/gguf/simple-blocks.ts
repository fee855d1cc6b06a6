import { halfBitsOf, roundToHalf } from "../formats/half.js";
import { extremeOf, fitAffine, fitSymmetric, importanceWeights } from "./k-search.js";

/**
 * ggml's blocks of 32 with one scale, rounded as quantize_row_*_ref of ggml-quants.c does, or with the scale that is best under an
 * importance matrix. Each encoder leaves in `values` what the block stands for.
 */

/** d: f16; 16 bytes, element j in the low nibble of byte j, element j + 16 in the high one. w = d (q - 8) */
export function encodeQ40(values: Float32Array, target: DataView, importance?: Float32Array): void {
  signed(values, target, 8, importance);
}

/** d: f16; u32 of fifth bits; nibbles as Q4_0. w = d (q - 16) */
export function encodeQ50(values: Float32Array, target: DataView, importance?: Float32Array): void {
  signed(values, target, 16, importance);
}

/** The value of largest magnitude takes the lowest code, which has no counterpart above. */
function signed(values: Float32Array, target: DataView, middle: 8 | 16, importance?: Float32Array): void {
  const scale = Math.fround(
    importance === undefined
      ? extremeOf(values) / -middle
      : fitSymmetric(values, middle, importanceWeights(values, importance)),
  );
  const inverse = scale === 0 ? 0 : Math.fround(1 / scale);
  const stored = roundToHalf(scale);
  target.setUint16(0, halfBitsOf(scale), true);
  const codes = new Uint8Array(32);
  for (let i = 0; i < 32; i++) {
    const code = Math.min(2 * middle - 1, Math.max(0, Math.trunc(values[i]! * inverse + middle + 0.5)));
    codes[i] = code;
    values[i] = stored * (code - middle);
  }
  writeNibbles(codes, target, middle === 8 ? 2 : 6);
  if (middle === 16) writeFifthBits(codes, target, 2);
}

/** d, m: f16; nibbles. w = d q + m */
export function encodeQ41(values: Float32Array, target: DataView, importance?: Float32Array): void {
  affine(values, target, 15, importance);
}

/** d, m: f16; u32 of fifth bits; nibbles. w = d q + m */
export function encodeQ51(values: Float32Array, target: DataView, importance?: Float32Array): void {
  affine(values, target, 31, importance);
}

function affine(values: Float32Array, target: DataView, most: 15 | 31, importance?: Float32Array): void {
  const { low, scale } = importance === undefined ? spanOf(values, most) : fitted(values, most, importance);
  const inverse = scale === 0 ? 0 : Math.fround(1 / scale);
  target.setUint16(0, halfBitsOf(scale), true);
  target.setUint16(2, halfBitsOf(low), true);
  const storedScale = roundToHalf(scale);
  const storedLow = roundToHalf(low);
  const codes = new Uint8Array(32);
  for (let i = 0; i < 32; i++) {
    const code = Math.max(0, Math.min(most, Math.trunc((values[i]! - low) * inverse + 0.5)));
    codes[i] = code;
    values[i] = storedScale * code + storedLow;
  }
  writeNibbles(codes, target, most === 15 ? 4 : 8);
  if (most === 31) writeFifthBits(codes, target, 4);
}

interface Span {
  /** What the lowest code stands for. */
  readonly low: number;
  readonly scale: number;
}

function spanOf(values: Float32Array, most: number): Span {
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return { low, scale: Math.fround((high - low) / most) };
}

const fit = { scale: 0, minimum: 0 };

function fitted(values: Float32Array, most: number, importance: Float32Array): Span {
  const search = { most, first: -0.9, steps: 18, absolute: false };
  fitAffine(values, importanceWeights(values, importance), search, fit);
  return { low: -fit.minimum, scale: Math.fround(fit.scale) };
}

/** d: f16; 32 signed bytes. w = d q */
export function encodeQ80(values: Float32Array, target: DataView): void {
  const scale = Math.fround(Math.abs(extremeOf(values)) / 127);
  const inverse = scale === 0 ? 0 : Math.fround(1 / scale);
  const stored = roundToHalf(scale);
  target.setUint16(0, halfBitsOf(scale), true);
  for (let i = 0; i < 32; i++) {
    const scaled = Math.fround(values[i]! * inverse);
    // Halves go away from zero.
    const code = scaled < 0 ? -((0.5 - scaled) | 0) : (scaled + 0.5) | 0;
    target.setInt8(2 + i, code);
    values[i] = stored * code;
  }
}

function writeNibbles(codes: Uint8Array, target: DataView, offset: number): void {
  for (let i = 0; i < 16; i++) target.setUint8(offset + i, (codes[i]! & 15) | ((codes[i + 16]! & 15) << 4));
}

function writeFifthBits(codes: Uint8Array, target: DataView, offset: number): void {
  let high = 0;
  for (let i = 0; i < 32; i++) high |= (codes[i]! >> 4) << i;
  target.setUint32(offset, high >>> 0, true);
}
