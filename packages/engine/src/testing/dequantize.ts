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
export interface GroupedMatrix {
  readonly type: GroupedType;
  readonly rows: number;
  readonly cols: number;
  readonly groupSize?: number;
  readonly columnOrder?: Int32Array;
}

/** Its values, columns in the order of the inputs. */
export function dequantizeGroups(
  matrix: GroupedMatrix,
  bytes: Uint8Array,
  meta: { readonly scales: Float32Array; readonly zeros?: Float32Array | undefined },
): Float32Array {
  const { rows, cols, groupSize = cols, columnOrder } = matrix;
  const out = new Float32Array(rows * cols);
  for (let at = 0; at < out.length; at++) {
    const group = Math.floor(at / groupSize);
    const scale = meta.scales[group] ?? NaN;
    const column = at % cols;
    const to = at - column + (columnOrder?.[column] ?? column);
    const byte = (index: number): number => bytes[index] ?? NaN;
    if (matrix.type === "int8") out[to] = scale * ((byte(at) << 24) >> 24);
    else out[to] = scale * (((byte(at >> 1) >> (4 * (at & 1))) & 15) - (meta.zeros?.[group] ?? 8));
  }
  return out;
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

const decoders: Readonly<Record<StoredType, Decoder>> = {
  f32: { elements: 1, size: 4, decode: (block) => block.getFloat32(0, true) },
  f16: { elements: 1, size: 2, decode: (block) => half(block, 0) },
  bf16: { elements: 1, size: 2, decode: (block) => fromBfloat16(block.getUint16(0, true)) },
  q4_0: {
    elements: 32,
    size: 18,
    decode: (block, i) => half(block, 0) * (nibble(block, 2 + (i % 16), i >= 16) - 8),
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
