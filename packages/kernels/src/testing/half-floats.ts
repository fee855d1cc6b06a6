import type { KvDtype } from "../backend.js";

const float = new Float32Array(1);
const bits = new Uint32Array(float.buffer);

/** The nearest bfloat16, ties to even. */
export function toBf16Bits(value: number): number {
  float[0] = value;
  const pattern = bits[0] ?? 0;
  return (pattern + 0x7fff + ((pattern >>> 16) & 1)) >>> 16;
}

function fromBf16Bits(half: number): number {
  bits[0] = half << 16;
  return float[0] ?? 0;
}

/** The nearest binary16, ties to even, for values within its range. */
function roundToF16(value: number): number {
  const magnitude = Math.abs(value);
  if (magnitude === 0) return value;
  const exponent = Math.max(Math.floor(Math.log2(magnitude)), -14);
  const unit = 2 ** (exponent - 10);
  const scaled = magnitude / unit;
  const floor = Math.floor(scaled);
  const rest = scaled - floor;
  const rounded = rest > 0.5 || (rest === 0.5 && floor % 2 === 1) ? floor + 1 : floor;
  return Math.sign(value) * rounded * unit;
}

/** What a KV cache of this type gives back for the key or value of one head. */
export function roundToKv(dtype: KvDtype, head: ArrayLike<number>): number[] {
  const values = Array.from(head, Math.fround);
  if (dtype === "bf16") return values.map((value) => fromBf16Bits(toBf16Bits(value)));
  if (dtype === "f16") return values.map(roundToF16);
  if (dtype === "f32") return values;
  const most = Math.max(...values.map(Math.abs));
  return most === 0 ? values : values.map((value) => (Math.round((value * 127) / most) * most) / 127);
}
