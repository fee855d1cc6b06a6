import type { WeightType } from "@octavo/kernels";
import { fromBfloat16, fromHalf } from "./float-bits.js";
import type { GroupedType, StoredType } from "./quantize.js";

/** The values that stored bytes stand for, element by element from the layouts in ggml-common.h; the slow, plain reading. */
export function dequantize(type: StoredType, bytes: Uint8Array): Float32Array {
  const { elements, size, decode } = decoders[type];
  const blocks = bytes.byteLength / size;
  const out = new Float32Array(blocks * elements);
  for (let block = 0; block < blocks; block++) {
    const view = new DataView(bytes.buffer, bytes.byteOffset + block * size, size);
    for (let i = 0; i < elements; i++) out[block * elements + i] = decode(view, i);
  }
  return out;
}

/** A matrix whose scales are arrays of their own, as `MatrixSource` describes it. */
interface GroupedMatrix {
  readonly type: GroupedType;
  readonly rows: number;
  readonly cols: number;
  readonly groupSize?: number;
  readonly columnOrder?: Int32Array;
  readonly table?: Float32Array;
  readonly scaleRows?: number;
}

export function isGrouped(type: WeightType): type is GroupedType {
  return ["int2", "int3", "int4", "int8", "f8_e4m3", "uint8", "table4"].includes(type);
}

/** Its values, columns in the order of the inputs. */
export function dequantizeGroups(
  matrix: GroupedMatrix,
  bytes: Uint8Array,
  meta: { readonly scales: Float32Array; readonly zeros?: Float32Array | undefined },
): Float32Array {
  const { type, rows, cols, groupSize = cols, scaleRows = rows, columnOrder, table } = matrix;
  const groups = Math.ceil(cols / groupSize);
  const out = new Float32Array(rows * cols);
  for (let at = 0; at < out.length; at++) {
    const column = at % cols;
    const group = (Math.floor(at / cols) % scaleRows) * groups + Math.floor(column / groupSize);
    const zero = meta.zeros?.[group] ?? (type === "int4" ? 8 : 0);
    const code = codeValue(type, bytes, at, table);
    out[at - column + (columnOrder?.[column] ?? column)] = (meta.scales[group] ?? NaN) * (code - zero);
  }
  return out;
}

function codeValue(
  type: GroupedType,
  bytes: Uint8Array,
  at: number,
  table: Float32Array | undefined,
): number {
  const byte = bytes[at] ?? NaN;
  const code = ((bytes[at >> 1] ?? NaN) >> (4 * (at & 1))) & 15;
  switch (type) {
    case "int2":
      return ((bytes[at >> 2] ?? NaN) >> (2 * (at & 3))) & 3;
    case "int3": {
      const pair = (bytes[(3 * at) >> 3] ?? NaN) | ((bytes[((3 * at) >> 3) + 1] ?? 0) << 8);
      return (pair >> ((3 * at) & 7)) & 7;
    }
    case "int8":
      return (byte << 24) >> 24;
    case "uint8":
      return byte;
    case "int4":
      return code;
    case "table4":
      return table?.[code] ?? NaN;
    case "f8_e4m3":
      return fromE4m3(byte);
  }
}

/** 1 sign, 4 exponent bits of bias 7, 3 mantissa bits; all ones are NaN, and there is no infinity. */
function fromE4m3(byte: number): number {
  const exponent = (byte >> 3) & 15;
  const mantissa = byte & 7;
  if ((byte & 0x7f) === 0x7f) return NaN;
  const magnitude = exponent === 0 ? mantissa / 512 : (1 + mantissa / 8) * 2 ** (exponent - 7);
  return byte >= 128 ? -magnitude : magnitude;
}

interface Decoder {
  readonly elements: number;
  readonly size: number;
  /** Element `i` of the block. */
  readonly decode: (block: DataView, i: number) => number;
}

const half = (block: DataView, offset: number): number => fromHalf(block.getUint16(offset, true));
const nibble = (block: DataView, offset: number, high: boolean): number =>
  high ? block.getUint8(offset) >> 4 : block.getUint8(offset) & 15;

/** Bits 2j of byte 32n + l are element 128n + 32j + l's. */
const bitPair = (block: DataView, offset: number, i: number): number =>
  (block.getUint8(offset + (i >> 7) * 32 + (i & 31)) >> (2 * ((i >> 5) & 3))) & 3;

/** kvalues_iq4nl of ggml-common.h. */
const iq4Values = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];
/** E2M1 without its sign (OCP Microscaling Formats, version 1.0). */
const e2m1Values = [0, 0.5, 1, 1.5, 2, 3, 4, 6];

const decoders: Readonly<Record<StoredType, Decoder>> = {
  f32: { elements: 1, size: 4, decode: (block) => block.getFloat32(0, true) },
  f16: { elements: 1, size: 2, decode: (block) => half(block, 0) },
  bf16: { elements: 1, size: 2, decode: (block) => fromBfloat16(block.getUint16(0, true)) },
  q4_0: {
    elements: 32,
    size: 18,
    decode: (block, i) => half(block, 0) * (nibble(block, 2 + (i % 16), i >= 16) - 8),
  },
  q4_1: {
    elements: 32,
    size: 20,
    decode: (block, i) => half(block, 0) * nibble(block, 4 + (i % 16), i >= 16) + half(block, 2),
  },
  q5_1: {
    elements: 32,
    size: 24,
    decode: (block, i) => {
      const fifth = (block.getUint32(4, true) >>> i) & 1;
      return half(block, 0) * (nibble(block, 8 + (i % 16), i >= 16) | (fifth << 4)) + half(block, 2);
    },
  },
  q2_k: {
    elements: 256,
    size: 84,
    decode: (block, i) => {
      const scales = block.getUint8(i >> 4);
      return half(block, 80) * (scales & 15) * bitPair(block, 16, i) - half(block, 82) * (scales >> 4);
    },
  },
  q3_k: {
    elements: 256,
    size: 110,
    decode: (block, i) => {
      const sub = i >> 4;
      const low = nibble(block, 96 + (sub & 7), sub >= 8);
      const high = (block.getUint8(104 + (sub & 3)) >> (2 * (sub >> 2))) & 3;
      const third = (block.getUint8(i & 31) >> (i >> 5)) & 1;
      return half(block, 108) * ((low | (high << 4)) - 32) * ((bitPair(block, 32, i) | (third << 2)) - 4);
    },
  },
  iq4_nl: {
    elements: 32,
    size: 18,
    decode: (block, i) => half(block, 0) * (iq4Values[nibble(block, 2 + (i % 16), i >= 16)] ?? NaN),
  },
  iq4_xs: {
    elements: 256,
    size: 136,
    decode: (block, i) => {
      const sub = i >> 5;
      const high = (block.getUint16(2, true) >> (2 * sub)) & 3;
      const scale = (nibble(block, 4 + (sub >> 1), (sub & 1) === 1) | (high << 4)) - 32;
      return (
        half(block, 0) * scale * (iq4Values[nibble(block, 8 + 16 * sub + (i % 16), i % 32 >= 16)] ?? NaN)
      );
    },
  },
  mxfp4: {
    elements: 32,
    size: 17,
    decode: (block, i) => {
      const code = nibble(block, 1 + (i % 16), i >= 16);
      return 2 ** (block.getUint8(0) - 127) * (e2m1Values[code & 7] ?? NaN) * (code < 8 ? 1 : -1);
    },
  },
  q5_0: {
    elements: 32,
    size: 22,
    decode: (block, i) => {
      const fifth = (block.getUint32(2, true) >>> i) & 1;
      return half(block, 0) * ((nibble(block, 6 + (i % 16), i >= 16) | (fifth << 4)) - 16);
    },
  },
  q8_0: { elements: 32, size: 34, decode: (block, i) => half(block, 0) * block.getInt8(2 + i) },
  q4_k: {
    elements: 256,
    size: 144,
    decode: (block, i) => scaled(block, i, nibble(block, 16 + pairByte(i), oddSub(i))),
  },
  q5_k: {
    elements: 256,
    size: 176,
    decode: (block, i) => {
      const fifth = (block.getUint8(16 + (i % 32)) >> (i >> 5)) & 1;
      return scaled(block, i, nibble(block, 48 + pairByte(i), oddSub(i)) | (fifth << 4));
    },
  },
  q6_k: {
    elements: 256,
    size: 210,
    decode: (block, i) => {
      const within = i % 128;
      const quarter = within >> 5;
      const low = nibble(block, (i >> 7) * 64 + (within % 64), quarter >= 2);
      const high = (block.getUint8(128 + (i >> 7) * 32 + (i % 32)) >> (quarter * 2)) & 3;
      return half(block, 208) * block.getInt8(192 + (i >> 4)) * ((low | (high << 4)) - 32);
    },
  },
};

/** Byte of the nibble within a K block's quants: 32 bytes for two sub-blocks, the first in the low nibbles. */
function pairByte(i: number): number {
  return (i >> 6) * 32 + (i % 32);
}

function oddSub(i: number): boolean {
  return ((i >> 5) & 1) === 1;
}

/** Sub-block scale and minimum: 6 bits each, packed into 12 bytes. */
function scaled(block: DataView, i: number, quant: number): number {
  const sub = i >> 5;
  const byte = (offset: number): number => block.getUint8(4 + offset);
  const scale = sub < 4 ? byte(sub) & 63 : (byte(sub + 4) & 15) | ((byte(sub - 4) >> 6) << 4);
  const minimum = sub < 4 ? byte(sub + 4) & 63 : (byte(sub + 4) >> 4) | ((byte(sub) >> 6) << 4);
  return half(block, 0) * scale * quant - half(block, 2) * minimum;
}
