import type { FloatType } from "../checkpoint/tensor-storage.js";

/**
 * Little-endian floats of one type as another, rounded to nearest even. Values beyond f16's range become infinite, which
 * the backend then refuses. `bytes` may start anywhere.
 */
export function convertFloats(bytes: Uint8Array, from: FloatType, to: FloatType): Uint8Array {
  if (from === to) return bytes;
  const length = bytes.byteLength / (from === "f32" ? 4 : 2);
  const bits = toSingleBits(bytes, from, length);
  if (to === "f32") return new Uint8Array(bits.buffer);
  const halves = new Uint16Array(length);
  const round = to === "bf16" ? bfloat16Bits : halfBits;
  for (let i = 0; i < length; i++) halves[i] = round(bits[i] ?? 0);
  return new Uint8Array(halves.buffer);
}

function toSingleBits(bytes: Uint8Array, from: FloatType, length: number): Uint32Array {
  const aligned = bytes.slice().buffer;
  if (from === "f32") return new Uint32Array(aligned);
  const halves = new Uint16Array(aligned);
  const bits = new Uint32Array(length);
  if (from === "bf16") for (let i = 0; i < length; i++) bits[i] = (halves[i] ?? 0) << 16;
  else for (let i = 0; i < length; i++) bits[i] = singleBitsOfHalf(halves[i] ?? 0);
  return bits;
}

function bfloat16Bits(single: number): number {
  // A NaN must not be rounded into an infinity.
  if ((single & 0x7fffffff) > 0x7f800000) return (single >>> 16) | 0x40;
  return (single + 0x7fff + ((single >>> 16) & 1)) >>> 16;
}

/** The bits of the f16 nearest to a single's bits. */
export function halfBits(single: number): number {
  const sign = (single >>> 16) & 0x8000;
  const magnitude = single & 0x7fffffff;
  if (magnitude > 0x7f800000) return sign | 0x7e00;
  // 65520 and above round to infinity.
  if (magnitude >= 0x477ff000) return sign | 0x7c00;
  // Below 2^-14 the result is subnormal: the mantissa, with its hidden bit, is shifted to units of 2^-24.
  if (magnitude < 0x38800000) {
    const shift = 126 - (magnitude >>> 23);
    return shift > 24 ? sign : sign | shiftRounded((magnitude & 0x7fffff) | 0x800000, shift);
  }
  return sign | (shiftRounded(magnitude, 13) - (112 << 10));
}

/** `value / 2^shift`, ties to even. */
function shiftRounded(value: number, shift: number): number {
  const whole = value >>> shift;
  const rest = value & ((1 << shift) - 1);
  const half = 1 << (shift - 1);
  return rest > half || (rest === half && (whole & 1) === 1) ? whole + 1 : whole;
}

/** An f16's bits as a single's. */
export function singleBitsOfHalf(half: number): number {
  const sign = (half & 0x8000) << 16;
  const exponent = (half >>> 10) & 31;
  const mantissa = half & 0x3ff;
  if (exponent === 31) return (sign | 0x7f800000 | (mantissa << 13)) >>> 0;
  if (exponent > 0) return (sign | ((exponent + 112) << 23) | (mantissa << 13)) >>> 0;
  if (mantissa === 0) return sign >>> 0;
  const leading = Math.clz32(mantissa) - 21;
  return (sign | ((113 - leading) << 23) | (((mantissa << leading) & 0x3ff) << 13)) >>> 0;
}

/** Value of each code of E4M3 without infinities (NVIDIA's and OCP's). */
export const e4m3Values: Float64Array = Float64Array.from({ length: 256 }, (_, code) => {
  const exponent = (code >> 3) & 15;
  const mantissa = code & 7;
  if ((code & 0x7f) === 0x7f) return Number.NaN;
  const magnitude = exponent === 0 ? mantissa / 512 : (1 + mantissa / 8) * 2 ** (exponent - 7);
  return code >= 128 ? -magnitude : magnitude;
});

/** Value of each code of E2M1 (OCP Microscaling Formats, version 1.0). */
export const e2m1Table: Float32Array = Float32Array.from([
  0, 0.5, 1, 1.5, 2, 3, 4, 6, -0, -0.5, -1, -1.5, -2, -3, -4, -6,
]);
