import { endianness as machineEndianness } from "node:os";
import type { EmbedDtype, Endianness } from "@octavo/protocol";

interface FloatFormat {
  readonly bytes: 1 | 2;
  readonly bias: number;
  readonly mantissaBits: number;
  /** Bits of what is beyond the largest finite number: infinity, or NaN where the format has none. */
  readonly overflow: number;
}

const formats: Readonly<Record<Exclude<EmbedDtype, "float32">, FloatFormat>> = {
  float16: { bytes: 2, bias: 15, mantissaBits: 10, overflow: 0x7c00 },
  bfloat16: { bytes: 2, bias: 127, mantissaBits: 7, overflow: 0x7f80 },
  fp8_e4m3: { bytes: 1, bias: 7, mantissaBits: 3, overflow: 0x7f },
  fp8_e5m2: { bytes: 1, bias: 15, mantissaBits: 2, overflow: 0x7c },
};

/** The bytes of a vector's numbers, rounded to nearest, ties to even. */
export function encodeVector(vector: Float32Array, dtype: EmbedDtype, endianness: Endianness): Buffer {
  const isLittle = endianness === "native" ? machineEndianness() === "LE" : endianness === "little";
  if (dtype === "float32") {
    const bytes = Buffer.alloc(vector.length * 4);
    for (const [index, value] of vector.entries())
      if (isLittle) bytes.writeFloatLE(value, index * 4);
      else bytes.writeFloatBE(value, index * 4);
    return bytes;
  }
  const format = formats[dtype];
  const bytes = Buffer.alloc(vector.length * format.bytes);
  for (const [index, value] of vector.entries()) {
    const bits = floatBits(value, format);
    if (format.bytes === 1) bytes.writeUInt8(bits, index);
    else if (isLittle) bytes.writeUInt16LE(bits, index * 2);
    else bytes.writeUInt16BE(bits, index * 2);
  }
  return bytes;
}

function floatBits(value: number, { bytes, bias, mantissaBits, overflow }: FloatFormat): number {
  const sign = value < 0 || Object.is(value, -0) ? 1 << (8 * bytes - 1) : 0;
  const magnitude = Math.abs(value);
  const least = 1 - bias;
  // the exponent of the numbers around it; subnormal ones share the least
  let exponent = magnitude === 0 ? least : Math.max(Math.floor(Math.log2(magnitude)), least);
  while (exponent > least && 2 ** exponent > magnitude) exponent -= 1;
  const units = magnitude / 2 ** (exponent - mantissaBits);
  const whole = Math.floor(units);
  const rest = units - whole;
  const rounded = rest > 0.5 || (rest === 0.5 && whole % 2 === 1) ? whole + 1 : whole;
  // a mantissa that rounds up to the next power of two carries into the exponent
  const bits = (exponent - least) * 2 ** mantissaBits + rounded;
  return sign | (Number.isFinite(magnitude) ? Math.min(bits, overflow) : overflow);
}
