import type { WeightType } from "@octavo/kernels";
import type { CodeType, ScaleType } from "../wgsl/matrix-forms.js";
import { fromHalfBits } from "./half.js";

/** Where a block's codes and scales go. */
export interface BlockTarget {
  /** A code a column: signed for int8, 0 to 15 for int4. */
  readonly codes: Int8Array;
  /** Scale and offset of each group. */
  readonly pairs: Float32Array;
  /** Their factors, every 256 columns. */
  readonly supers: Float32Array;
}

/** A GGUF block type that is kept in codes. Layouts are those of ggml-common.h. */
export interface BlockType {
  readonly codes: CodeType;
  readonly scales: ScaleType;
  readonly group: number;
  /** Reads the block at `at` of `bytes` to column `column` and on. */
  readonly read: (bytes: Uint8Array, at: number, column: number, target: BlockTarget) => void;
}

const half = (bytes: Uint8Array, at: number): number =>
  fromHalfBits((bytes[at] ?? 0) | ((bytes[at + 1] ?? 0) << 8));

/** Low nibbles of 16 bytes, then the high ones. */
function nibbles(bytes: Uint8Array, at: number, column: number, codes: Int8Array): void {
  for (let i = 0; i < 16; i++) {
    const byte = bytes[at + i] ?? 0;
    codes[column + i] = byte & 15;
    codes[column + i + 16] = byte >> 4;
  }
}

function setPair(pairs: Float32Array, group: number, scale: number, offset: number): void {
  pairs[2 * group] = scale;
  pairs[2 * group + 1] = offset;
}

/** Scale and minimum `j` of the eight of a q4_k or q5_k block, six bits each. */
function scaleAndMin(bytes: Uint8Array, at: number, j: number): readonly [number, number] {
  const byte = (index: number): number => bytes[at + index] ?? 0;
  if (j < 4) return [byte(j) & 63, byte(j + 4) & 63];
  return [(byte(j + 4) & 15) | ((byte(j - 4) >> 6) << 4), (byte(j + 4) >> 4) | ((byte(j) >> 6) << 4)];
}

function fiveBits(hasMin: boolean): BlockType["read"] {
  return (bytes, at, column, { codes, pairs }) => {
    const rest = at + (hasMin ? 4 : 2);
    nibbles(bytes, rest + 4, column, codes);
    for (let i = 0; i < 32; i++) {
      const high = ((bytes[rest + (i >> 3)] ?? 0) >> (i & 7)) & 1;
      codes[column + i] = (codes[column + i] ?? 0) + 16 * high - (hasMin ? 0 : 16);
    }
    setPair(pairs, column / 32, half(bytes, at), hasMin ? half(bytes, at + 2) : 0);
  };
}

/** q4_k, and q5_k, whose fifth bits lie behind the scales. */
function minScaled(highBits: boolean): BlockType["read"] {
  return (bytes, at, column, { codes, pairs, supers }) => {
    setPair(supers, column / 256, half(bytes, at), half(bytes, at + 2));
    const values = at + 16 + (highBits ? 32 : 0);
    for (let part = 0; part < 8; part++) {
      const [scale, min] = scaleAndMin(bytes, at + 4, part);
      setPair(pairs, column / 32 + part, scale, -min);
      for (let i = 0; i < 32; i++) {
        const low = ((bytes[values + (part >> 1) * 32 + i] ?? 0) >> (4 * (part & 1))) & 15;
        const high = highBits ? ((bytes[at + 16 + i] ?? 0) >> part) & 1 : 0;
        codes[column + part * 32 + i] = low + 16 * high;
      }
    }
  };
}

/** Bits 2j of byte 32n + l are element 128n + 32j + l's. */
const bitPair = (bytes: Uint8Array, at: number, i: number): number =>
  ((bytes[at + (i >> 7) * 32 + (i & 31)] ?? 0) >> (2 * ((i >> 5) & 3))) & 3;

export const blockTypes: Readonly<Partial<Record<WeightType, BlockType>>> = {
  q4_0: {
    codes: "int4",
    scales: "halfs",
    group: 32,
    read: (bytes, at, column, { codes, pairs }) => {
      nibbles(bytes, at + 2, column, codes);
      const scale = half(bytes, at);
      setPair(pairs, column / 32, scale, -8 * scale);
    },
  },
  q4_1: {
    codes: "int4",
    scales: "halfs",
    group: 32,
    read: (bytes, at, column, { codes, pairs }) => {
      nibbles(bytes, at + 4, column, codes);
      setPair(pairs, column / 32, half(bytes, at), half(bytes, at + 2));
    },
  },
  q5_0: { codes: "int8", scales: "halfs", group: 32, read: fiveBits(false) },
  q5_1: { codes: "int8", scales: "halfs", group: 32, read: fiveBits(true) },
  q8_0: {
    codes: "int8",
    scales: "halfs",
    group: 32,
    read: (bytes, at, column, { codes, pairs }) => {
      for (let i = 0; i < 32; i++) codes[column + i] = bytes[at + 2 + i] ?? 0;
      setPair(pairs, column / 32, half(bytes, at), 0);
    },
  },
  q2_k: {
    codes: "int4",
    scales: "levels",
    group: 16,
    read: (bytes, at, column, { codes, pairs, supers }) => {
      setPair(supers, column / 256, half(bytes, at + 80), half(bytes, at + 82));
      for (let part = 0; part < 16; part++) {
        const packed = bytes[at + part] ?? 0;
        setPair(pairs, column / 16 + part, packed & 15, -(packed >> 4));
      }
      for (let i = 0; i < 256; i++) codes[column + i] = bitPair(bytes, at + 16, i);
    },
  },
  q3_k: {
    codes: "int4",
    scales: "levels",
    group: 16,
    read: (bytes, at, column, { codes, pairs, supers }) => {
      const factor = half(bytes, at + 108);
      setPair(supers, column / 256, factor, factor);
      for (let part = 0; part < 16; part++) {
        const low = ((bytes[at + 96 + (part & 7)] ?? 0) >> (part < 8 ? 0 : 4)) & 15;
        const high = ((bytes[at + 104 + (part & 3)] ?? 0) >> (2 * (part >> 2))) & 3;
        const scale = (low | (high << 4)) - 32;
        setPair(pairs, column / 16 + part, scale, -4 * scale);
      }
      for (let i = 0; i < 256; i++) {
        const high = ((bytes[at + (i & 31)] ?? 0) >> (i >> 5)) & 1;
        codes[column + i] = bitPair(bytes, at + 32, i) + 4 * high;
      }
    },
  },
  q4_k: { codes: "int4", scales: "levels", group: 32, read: minScaled(false) },
  q5_k: { codes: "int8", scales: "levels", group: 32, read: minScaled(true) },
  q6_k: {
    codes: "int8",
    scales: "levels",
    group: 16,
    read: (bytes, at, column, { codes, pairs, supers }) => {
      setPair(supers, column / 256, half(bytes, at + 208), 0);
      for (let part = 0; part < 16; part++)
        setPair(pairs, column / 16 + part, ((bytes[at + 192 + part] ?? 0) << 24) >> 24, 0);
      for (let i = 0; i < 256; i++) {
        const [half128, quarter, lane] = [i >> 7, (i >> 5) & 3, i & 31];
        const low =
          ((bytes[at + half128 * 64 + (quarter & 1) * 32 + lane] ?? 0) >> (4 * (quarter >> 1))) & 15;
        const high = ((bytes[at + 128 + half128 * 32 + lane] ?? 0) >> (2 * quarter)) & 3;
        codes[column + i] = (low | (high << 4)) - 32;
      }
    },
  },
};

/** kvalues_iq4nl of ggml-common.h. */
const iq4Values = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];
/** E2M1 (OCP Microscaling Formats, version 1.0). */
const e2m1Values = [0, 0.5, 1, 1.5, 2, 3, 4, 6, -0, -0.5, -1, -1.5, -2, -3, -4, -6];

/** Block types that are kept as f16, since their codes are not evenly spaced: the values of a block. */
export const valueTypes: Readonly<
  Partial<Record<WeightType, (bytes: Uint8Array, at: number, column: number, values: Float32Array) => void>>
> = {
  iq4_nl: (bytes, at, column, values) => lookUp(bytes, at + 2, half(bytes, at), iq4Values, values, column),
  iq4_xs: (bytes, at, column, values) => {
    const highs = (bytes[at + 2] ?? 0) | ((bytes[at + 3] ?? 0) << 8);
    for (let part = 0; part < 8; part++) {
      const low = ((bytes[at + 4 + (part >> 1)] ?? 0) >> (4 * (part & 1))) & 15;
      const scale = half(bytes, at) * ((low | (((highs >> (2 * part)) & 3) << 4)) - 32);
      lookUp(bytes, at + 8 + 16 * part, scale, iq4Values, values, column + 32 * part);
    }
  },
  mxfp4: (bytes, at, column, values) =>
    lookUp(bytes, at + 1, 2 ** ((bytes[at] ?? 0) - 127), e2m1Values, values, column),
};

function lookUp(
  bytes: Uint8Array,
  at: number,
  scale: number,
  table: readonly number[],
  values: Float32Array,
  column: number,
): void {
  for (let i = 0; i < 16; i++) {
    const byte = bytes[at + i] ?? 0;
    values[column + i] = scale * (table[byte & 15] ?? 0);
    values[column + i + 16] = scale * (table[byte >> 4] ?? 0);
  }
}
