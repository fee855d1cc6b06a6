import type { WeightType } from "@octavo/kernels";
import type { MatrixParts, MatrixRecipe } from "./checkpoint.js";
import { readTensor } from "./read-tensor.js";

/**
 * GGUF blocks that the kernels do not take as they are, as codes with scales of their own. Exact but for one rounding to f32 of
 * each scale and zero point. Layouts: ggml-common.h; dequantisation: ggml-quants.c.
 */
export interface GgufRepacking {
  /** The kernels' type for it. */
  readonly type: WeightType;
  readonly blockElements: number;
  readonly blockBytes: number;
  /** Columns that share a scale. */
  readonly groupSize: number;
  readonly table?: readonly number[];
  /** Writes a block's codes, one byte each, and for each of its groups w = scale * code + offset. */
  readonly decode: (block: DataView, codes: Uint8Array, scales: Float32Array, offsets: Float32Array) => void;
}

/** kvalues_iq4nl and kvalues_mxfp4 of ggml-common.h; the latter are twice the values of E2M1. */
const iq4Values = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];
const mxfp4Values = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12];
const threeBitValues = [-4, -3, -2, -1, 0, 1, 2, 3, 0, 0, 0, 0, 0, 0, 0, 0];
const plainValues = Array.from({ length: 16 }, (_, code) => code);

const half = (block: DataView, offset: number): number => {
  const bits = block.getUint16(offset, true);
  const exponent = (bits >> 10) & 31;
  const mantissa = bits & 1023;
  const magnitude =
    exponent === 0
      ? mantissa * 2 ** -24
      : exponent === 31
        ? mantissa === 0
          ? Infinity
          : NaN
        : (1 + mantissa / 1024) * 2 ** (exponent - 15);
  return bits >= 0x8000 ? -magnitude : magnitude;
};

/** 16 bytes: element i in the low nibble of byte i, element i + 16 in the high one. */
function splitNibbles(block: DataView, offset: number, codes: Uint8Array, at: number): void {
  for (let i = 0; i < 16; i++) {
    const byte = block.getUint8(offset + i);
    codes[at + i] = byte & 15;
    codes[at + i + 16] = byte >> 4;
  }
}

/** 64 bytes of bit pairs: element 128n + 32j + l in bits 2j of byte 32n + l. */
function splitPairs(block: DataView, offset: number, codes: Uint8Array): void {
  for (let i = 0; i < 256; i++) {
    const byte = block.getUint8(offset + (i >> 7) * 32 + (i & 31));
    codes[i] = (byte >> (2 * ((i >> 5) & 3))) & 3;
  }
}

/** d, m: f16; nibbles. w = d q + m */
const q4_1: GgufRepacking = {
  type: "int4",
  blockElements: 32,
  blockBytes: 20,
  groupSize: 32,
  decode: (block, codes, scales, offsets) => {
    scales[0] = half(block, 0);
    offsets[0] = half(block, 2);
    splitNibbles(block, 4, codes, 0);
  },
};

/** d, m: f16; u32 of fifth bits; nibbles. w = d q + m */
const q5_1: GgufRepacking = {
  type: "uint8",
  blockElements: 32,
  blockBytes: 24,
  groupSize: 32,
  decode: (block, codes, scales, offsets) => {
    scales[0] = half(block, 0);
    offsets[0] = half(block, 2);
    splitNibbles(block, 8, codes, 0);
    const fifth = block.getUint32(4, true);
    for (let i = 0; i < 32; i++) codes[i] = (codes[i] ?? 0) | (((fifth >>> i) & 1) << 4);
  },
};

/** 16 bytes of scale and minimum nibbles; bit pairs; d, dmin: f16. w = d scale q - dmin minimum over groups of 16 */
const q2_k: GgufRepacking = {
  type: "table4",
  blockElements: 256,
  blockBytes: 84,
  groupSize: 16,
  table: plainValues,
  decode: (block, codes, scales, offsets) => {
    const d = half(block, 80);
    const dmin = half(block, 82);
    for (let group = 0; group < 16; group++) {
      const byte = block.getUint8(group);
      scales[group] = d * (byte & 15);
      offsets[group] = -dmin * (byte >> 4);
    }
    splitPairs(block, 16, codes);
  },
};

/** 32 bytes of third bits; bit pairs; 16 scales of 6 bits in 12 bytes; d: f16. w = d (scale - 32) (q - 4) over groups of 16 */
const q3_k: GgufRepacking = {
  type: "table4",
  blockElements: 256,
  blockBytes: 110,
  groupSize: 16,
  table: threeBitValues,
  decode: (block, codes, scales) => {
    const d = half(block, 108);
    for (let group = 0; group < 16; group++) {
      const low = block.getUint8(96 + (group & 7)) >> (group < 8 ? 0 : 4);
      const high = block.getUint8(104 + (group & 3)) >> (2 * (group >> 2));
      scales[group] = d * (((low & 15) | ((high & 3) << 4)) - 32);
    }
    splitPairs(block, 32, codes);
    for (let i = 0; i < 256; i++) {
      codes[i] = (codes[i] ?? 0) | (((block.getUint8(i & 31) >> (i >> 5)) & 1) << 2);
    }
  },
};

/** d: f16; nibbles. w = d value(q) */
const iq4_nl: GgufRepacking = {
  type: "table4",
  blockElements: 32,
  blockBytes: 18,
  groupSize: 32,
  table: iq4Values,
  decode: (block, codes, scales) => {
    scales[0] = half(block, 0);
    splitNibbles(block, 2, codes, 0);
  },
};

/** d: f16; high bits, then low nibbles of eight scales of 6 bits; nibbles. w = d (scale - 32) value(q) over groups of 32 */
const iq4_xs: GgufRepacking = {
  type: "table4",
  blockElements: 256,
  blockBytes: 136,
  groupSize: 32,
  table: iq4Values,
  decode: (block, codes, scales) => {
    const d = half(block, 0);
    const highBits = block.getUint16(2, true);
    for (let group = 0; group < 8; group++) {
      const low = (block.getUint8(4 + (group >> 1)) >> (4 * (group & 1))) & 15;
      scales[group] = d * ((low | (((highBits >> (2 * group)) & 3) << 4)) - 32);
      splitNibbles(block, 8 + 16 * group, codes, 32 * group);
    }
  },
};

/** e: the scale's exponent; nibbles of E2M1. w = 2^(e - 127) value(q) (OCP Microscaling Formats, version 1.0) */
const mxfp4: GgufRepacking = {
  type: "table4",
  blockElements: 32,
  blockBytes: 17,
  groupSize: 32,
  table: mxfp4Values,
  decode: (block, codes, scales) => {
    scales[0] = 2 ** (block.getUint8(0) - 128);
    splitNibbles(block, 1, codes, 0);
  },
};

/** Keyed by ggml's type number, with its name. */
export const ggufRepackings: ReadonlyMap<number, readonly [name: string, repacking: GgufRepacking]> = new Map(
  [
    [3, ["Q4_1", q4_1]],
    [7, ["Q5_1", q5_1]],
    [10, ["Q2_K", q2_k]],
    [11, ["Q3_K", q3_k]],
    [20, ["IQ4_NL", iq4_nl]],
    [23, ["IQ4_XS", iq4_xs]],
    [39, ["MXFP4", mxfp4]],
  ],
);

/** Blocks of `numElements` weights as parts of a matrix. */
export function repackBlocks(repacking: GgufRepacking, bytes: Uint8Array, numElements: number): MatrixParts {
  const { type, blockElements, blockBytes, groupSize, table } = repacking;
  const groupsPerBlock = blockElements / groupSize;
  const values = new Uint8Array(type === "uint8" ? numElements : numElements / 2);
  const scales = new Float32Array(numElements / groupSize);
  const zeros = new Float32Array(numElements / groupSize);
  const codes = new Uint8Array(blockElements);
  for (let block = 0; block * blockElements < numElements; block++) {
    const view = new DataView(bytes.buffer, bytes.byteOffset + block * blockBytes, blockBytes);
    const firstGroup = block * groupsPerBlock;
    const blockScales = scales.subarray(firstGroup, firstGroup + groupsPerBlock);
    const blockZeros = zeros.subarray(firstGroup, firstGroup + groupsPerBlock);
    repacking.decode(view, codes, blockScales, blockZeros);
    for (let group = 0; group < groupsPerBlock; group++) {
      settleOffset(
        codes.subarray(group * groupSize, (group + 1) * groupSize),
        blockScales,
        blockZeros,
        group,
      );
    }
    const at = block * blockElements;
    if (type === "uint8") values.set(codes, at);
    else {
      for (let i = 0; i < blockElements; i += 2)
        values[(at + i) / 2] = (codes[i] ?? 0) | ((codes[i + 1] ?? 0) << 4);
    }
  }
  const needsZeros = type === "int4" || zeros.some((zero) => zero !== 0);
  return {
    values,
    scales,
    groupSize,
    ...(needsZeros && { zeros }),
    ...(table !== undefined && { table: Float32Array.from(table) }),
  };
}

/** s q + o = s (q - z) with z = -o / s; where s is 0, codes of 0 with the scale -o and the zero point 1. */
function settleOffset(codes: Uint8Array, scales: Float32Array, zeros: Float32Array, group: number): void {
  const scale = scales[group] ?? 0;
  const offset = zeros[group] ?? 0;
  if (offset === 0) return;
  if (scale !== 0) {
    zeros[group] = -offset / scale;
    return;
  }
  codes.fill(0);
  scales[group] = -offset;
  zeros[group] = 1;
}

/** How a tensor of such blocks becomes a matrix. */
export function repackingRecipe(
  repacking: GgufRepacking,
  tensor: {
    readonly name: string;
    readonly path: string;
    readonly offset: number;
    readonly byteLength: number;
  },
  numElements: number,
): MatrixRecipe {
  const { type, groupSize, table = [] } = repacking;
  return {
    layout: `${type} ${groupSize} ${table.join(" ")}`,
    assemble: async () => repackBlocks(repacking, await readTensor(tensor), numElements),
    slices: (count) => {
      const byteLength = tensor.byteLength / count;
      return Array.from({ length: count }, (_, index) =>
        repackingRecipe(
          repacking,
          { ...tensor, offset: tensor.offset + index * byteLength, byteLength },
          numElements / count,
        ),
      );
    },
  };
}
