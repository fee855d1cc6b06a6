import type { WeightType } from "@octavo/kernels";
import { OctavoError } from "@octavo/protocol/errors";
import { fromHalf, toBfloat16, toHalf } from "./float-bits.js";

/** Types whose scales stand among the values. */
export type StoredType = Exclude<WeightType, GroupedType>;
/** Types whose scales are arrays of their own. */
export type GroupedType = "int2" | "int3" | "int4" | "int8" | "f8_e4m3" | "uint8" | "table4";
/** Types that `encodeValues` writes. */
export type WrittenType = Exclude<
  StoredType,
  "q4_1" | "q5_1" | "q2_k" | "q3_k" | "iq4_nl" | "iq4_xs" | "mxfp4"
>;

/**
 * Values in a storage type, as they lie in a file. Block layouts are GGUF's (ggml-common.h); `q4_0`, `q5_0` and `q8_0`
 * round as ggml's reference quantisers do, the K types take each sub-block's range without ggml's search for better scales.
 */
export function encodeValues(type: WrittenType, values: Float32Array): Uint8Array {
  const { elements, bytes, encode } = encoders[type];
  if (values.length % elements !== 0) {
    throw new OctavoError(
      "invalid_option",
      `${values.length} values do not fill ${type} blocks of ${elements}`,
    );
  }
  const out = new Uint8Array((values.length / elements) * bytes);
  for (let block = 0; block * elements < values.length; block++) {
    const target = new DataView(out.buffer, block * bytes, bytes);
    encode(values.subarray(block * elements, (block + 1) * elements), target);
  }
  return out;
}

interface Encoder {
  readonly elements: number;
  readonly bytes: number;
  readonly encode: (values: Float32Array, target: DataView) => void;
}

const encoders: Readonly<Record<WrittenType, Encoder>> = {
  f32: { elements: 1, bytes: 4, encode: (values, target) => target.setFloat32(0, at(values, 0), true) },
  f16: {
    elements: 1,
    bytes: 2,
    encode: (values, target) => target.setUint16(0, toHalf(at(values, 0)), true),
  },
  bf16: {
    elements: 1,
    bytes: 2,
    encode: (values, target) => target.setUint16(0, toBfloat16(at(values, 0)), true),
  },
  q4_0: { elements: 32, bytes: 18, encode: encodeQ4 },
  q5_0: { elements: 32, bytes: 22, encode: encodeQ5 },
  q8_0: { elements: 32, bytes: 34, encode: encodeQ8 },
  q4_k: { elements: 256, bytes: 144, encode: (values, target) => encodeK(values, target, 4) },
  q5_k: { elements: 256, bytes: 176, encode: (values, target) => encodeK(values, target, 5) },
  q6_k: { elements: 256, bytes: 210, encode: encodeQ6K },
};

/** Indices come from the block layout and are always in range. */
function at(values: ArrayLike<number>, index: number): number {
  return values[index] ?? 0;
}

/** The value of largest magnitude, sign kept. */
function extreme(values: Float32Array): number {
  return values.reduce((best, value) => (Math.abs(value) > Math.abs(best) ? value : best), 0);
}

function clamp(value: number, low: number, high: number): number {
  return Math.min(high, Math.max(low, value));
}

/** d: f16; 16 bytes, element j in the low nibble of byte j, element j + 16 in the high one. w = d (q - 8) */
function encodeQ4(values: Float32Array, target: DataView): void {
  const scale = extreme(values) / -8;
  const inverse = scale === 0 ? 0 : 1 / scale;
  target.setUint16(0, toHalf(scale), true);
  const quant = (j: number): number => clamp(Math.trunc(at(values, j) * inverse + 8.5), 0, 15);
  for (let j = 0; j < 16; j++) target.setUint8(2 + j, quant(j) | (quant(j + 16) << 4));
}

/** d: f16; u32 of fifth bits; 16 bytes of nibbles as q4_0. w = d (q - 16) */
function encodeQ5(values: Float32Array, target: DataView): void {
  const scale = extreme(values) / -16;
  const inverse = scale === 0 ? 0 : 1 / scale;
  target.setUint16(0, toHalf(scale), true);
  const quant = (j: number): number => clamp(Math.trunc(at(values, j) * inverse + 16.5), 0, 31);
  let high = 0;
  for (let j = 0; j < 32; j++) high |= (quant(j) >> 4) << j;
  target.setUint32(2, high >>> 0, true);
  for (let j = 0; j < 16; j++) target.setUint8(6 + j, (quant(j) & 15) | ((quant(j + 16) & 15) << 4));
}

/** d: f16; 32 signed bytes. w = d q */
function encodeQ8(values: Float32Array, target: DataView): void {
  const scale = Math.abs(extreme(values)) / 127;
  const inverse = scale === 0 ? 0 : 1 / scale;
  target.setUint16(0, toHalf(scale), true);
  for (let j = 0; j < 32; j++) {
    const value = at(values, j) * inverse;
    target.setInt8(2 + j, clamp(Math.sign(value) * Math.round(Math.abs(value)), -127, 127));
  }
}

/**
 * q4_k and q5_k: d, dmin: f16; 12 bytes with eight 6-bit scales and minima; q5_k: 32 bytes of fifth bits; 128 bytes of
 * nibbles, 32 per pair of sub-blocks. w = d scale q - dmin min
 */
function encodeK(values: Float32Array, target: DataView, bits: 4 | 5): void {
  const levels = (1 << bits) - 1;
  const ranges = Array.from({ length: 8 }, (_, sub) => {
    const part = values.subarray(sub * 32, sub * 32 + 32);
    const low = Math.min(0, ...part);
    return { scale: (Math.max(0, ...part) - low) / levels, minimum: -low };
  });
  const d = fromHalf(toHalf(Math.max(...ranges.map((range) => range.scale)) / 63));
  const dmin = fromHalf(toHalf(Math.max(...ranges.map((range) => range.minimum)) / 63));
  target.setUint16(0, toHalf(d), true);
  target.setUint16(2, toHalf(dmin), true);
  const scales = ranges.map((range) => (d === 0 ? 0 : clamp(Math.round(range.scale / d), 0, 63)));
  const minima = ranges.map((range) => (dmin === 0 ? 0 : clamp(Math.round(range.minimum / dmin), 0, 63)));
  for (let j = 0; j < 4; j++) {
    target.setUint8(4 + j, at(scales, j) | ((at(scales, j + 4) >> 4) << 6));
    target.setUint8(8 + j, at(minima, j) | ((at(minima, j + 4) >> 4) << 6));
    target.setUint8(12 + j, (at(scales, j + 4) & 15) | ((at(minima, j + 4) & 15) << 4));
  }
  const quant = (index: number): number => {
    const sub = index >> 5;
    const scale = d * at(scales, sub);
    return scale === 0
      ? 0
      : clamp(Math.round((at(values, index) + dmin * at(minima, sub)) / scale), 0, levels);
  };
  const nibbles = bits === 4 ? 16 : 48;
  for (let pair = 0; pair < 4; pair++) {
    for (let l = 0; l < 32; l++) {
      const low = quant(pair * 64 + l);
      const high = quant(pair * 64 + 32 + l);
      target.setUint8(nibbles + pair * 32 + l, (low & 15) | ((high & 15) << 4));
      if (bits === 4) continue;
      const fifth = ((low >> 4) << (pair * 2)) | ((high >> 4) << (pair * 2 + 1));
      target.setUint8(16 + l, target.getUint8(16 + l) | fifth);
    }
  }
}

/** 128 bytes of low nibbles, 64 of high bit pairs, 16 signed scales, d: f16. w = d scale (q - 32) */
function encodeQ6K(values: Float32Array, target: DataView): void {
  const ideal = Array.from(
    { length: 16 },
    (_, sub) => extreme(values.subarray(sub * 16, sub * 16 + 16)) / -32,
  );
  const widest = ideal.reduce((best, scale) => (Math.abs(scale) > Math.abs(best) ? scale : best), 0);
  const d = fromHalf(toHalf(widest / -128));
  target.setUint16(208, toHalf(d), true);
  const scales = ideal.map((scale) => (d === 0 ? 0 : clamp(Math.round(scale / d), -128, 127)));
  scales.forEach((scale, sub) => target.setInt8(192 + sub, scale));
  const quant = (index: number): number => {
    const scale = d * at(scales, index >> 4);
    return scale === 0 ? 32 : clamp(Math.round(at(values, index) / scale), -32, 31) + 32;
  };
  for (let half = 0; half < 2; half++) {
    for (let l = 0; l < 32; l++) {
      const [a = 0, b = 0, c = 0, e = 0] = [0, 32, 64, 96].map((step) => quant(half * 128 + step + l));
      target.setUint8(half * 64 + l, (a & 15) | ((c & 15) << 4));
      target.setUint8(half * 64 + 32 + l, (b & 15) | ((e & 15) << 4));
      target.setUint8(128 + half * 32 + l, (a >> 4) | ((b >> 4) << 2) | ((c >> 4) << 4) | ((e >> 4) << 6));
    }
  }
}
