import { halfBitsOf, roundToHalf } from "../formats/half.js";

/**
 * ggml's blocks of 32 with one scale, rounded as quantize_row_*_ref of ggml-quants.c does. Each encoder leaves in `values` what the
 * block stands for.
 */

/** The value of largest magnitude, its sign kept. */
function extremeOf(values: Float32Array): number {
  let extreme = 0;
  for (const value of values) if (Math.abs(value) > Math.abs(extreme)) extreme = value;
  return extreme;
}

/** d: f16; 16 bytes, element j in the low nibble of byte j, element j + 16 in the high one. w = d (q - 8) */
export function encodeQ40(values: Float32Array, target: DataView): void {
  signed(values, target, 8);
}

/** d: f16; u32 of fifth bits; nibbles as Q4_0. w = d (q - 16) */
export function encodeQ50(values: Float32Array, target: DataView): void {
  signed(values, target, 16);
}

/** The value of largest magnitude takes the lowest code, which has no counterpart above. */
function signed(values: Float32Array, target: DataView, middle: 8 | 16): void {
  const scale = Math.fround(extremeOf(values) / -middle);
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
export function encodeQ41(values: Float32Array, target: DataView): void {
  affine(values, target, 15);
}

/** d, m: f16; u32 of fifth bits; nibbles. w = d q + m */
export function encodeQ51(values: Float32Array, target: DataView): void {
  affine(values, target, 31);
}

function affine(values: Float32Array, target: DataView, most: 15 | 31): void {
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  const scale = Math.fround((high - low) / most);
  const inverse = scale === 0 ? 0 : Math.fround(1 / scale);
  target.setUint16(0, halfBitsOf(scale), true);
  target.setUint16(2, halfBitsOf(low), true);
  const storedScale = roundToHalf(scale);
  const storedLow = roundToHalf(low);
  const codes = new Uint8Array(32);
  for (let i = 0; i < 32; i++) {
    const code = Math.min(most, Math.trunc((values[i]! - low) * inverse + 0.5));
    codes[i] = code;
    values[i] = storedScale * code + storedLow;
  }
  writeNibbles(codes, target, most === 15 ? 4 : 8);
  if (most === 31) writeFifthBits(codes, target, 4);
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
