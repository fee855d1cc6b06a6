import type { MappedFile } from "./handles.js";

/**
 * Storage types a matrix may come in, with the columns and bytes of their smallest block. Block layouts of `q*`, `iq*` and `mxfp4`
 * are GGUF's (ggml-common.h). `native/matrix/weight_types.h` lists the same.
 */
export const weightTypes = {
  f32: { columns: 1, bytes: 4 },
  f16: { columns: 1, bytes: 2 },
  bf16: { columns: 1, bytes: 2 },
  q4_0: { columns: 32, bytes: 18 },
  q5_0: { columns: 32, bytes: 22 },
  q8_0: { columns: 32, bytes: 34 },
  q4_k: { columns: 256, bytes: 144 },
  q5_k: { columns: 256, bytes: 176 },
  q6_k: { columns: 256, bytes: 210 },
  /** Signed bytes `[rows, cols]`, one f32 scale per `groupSize` columns of a row. */
  int8: { columns: 32, bytes: 32 },
  /** Unsigned nibbles `[rows, cols / 2]`, low nibble first; w = scale * (nibble - zero), `zeros` f32 per group (8 when absent). */
  int4: { columns: 32, bytes: 16 },
  /** Bytes `[rows, cols]` of E4M3 (NVIDIA's and OCP's: no infinities), one f32 scale per `groupSize` columns of a row. */
  f8_e4m3: { columns: 1, bytes: 1 },
  /** Unsigned bytes `[rows, cols]`; w = scale * (byte - zero), `zeros` f32 per group and of any value (0 when absent). */
  uint8: { columns: 1, bytes: 1 },
  /** Nibbles `[rows, cols / 2]`, low nibble first, that index `table`; w = scale * (table[nibble] - zero), `zeros` as for uint8. */
  table4: { columns: 2, bytes: 1 },
  q4_1: { columns: 32, bytes: 20 },
  q5_1: { columns: 32, bytes: 24 },
  q2_k: { columns: 256, bytes: 84 },
  q3_k: { columns: 256, bytes: 110 },
  iq4_nl: { columns: 32, bytes: 18 },
  iq4_xs: { columns: 256, bytes: 136 },
  mxfp4: { columns: 32, bytes: 17 },
  /** Unsigned fields of 2 bits, four to a byte, the first lowest; w = scale * (field - zero), `zeros` as for uint8. */
  int2: { columns: 32, bytes: 8 },
  /** The same of 3 bits, 32 to 12 bytes. */
  int3: { columns: 32, bytes: 12 },
} as const;

export type WeightType = keyof typeof weightTypes;

/** Bytes of a tensor: a range of a mapped file, or memory. */
export type TensorBytes =
  | { readonly file: MappedFile; readonly offset: number; readonly byteLength: number }
  | { readonly data: Uint8Array };

/** A weight matrix `[rows, cols]`, row-major in its storage type. */
export interface MatrixSource {
  readonly type: WeightType;
  readonly rows: number;
  readonly cols: number;
  readonly bytes: TensorBytes;
  /** Only for types with separate scales (int2, int3, int4, int8, uint8, f8_e4m3, table4): f32 `[rows, ceil(cols / groupSize)]`. */
  readonly scales?: TensorBytes;
  /** Only for int2, int3, int4, uint8 and table4: f32 `[rows, ceil(cols / groupSize)]`. */
  readonly zeros?: TensorBytes;
  /** int2, int3, int4, int8: a multiple of 32 that divides `cols`; f8_e4m3, uint8, table4: any, the last group may be shorter. */
  readonly groupSize?: number;
  /**
   * f8_e4m3, uint8, table4 only: how many rows `scales` and `zeros` have, row r taking those of row `r % scaleRows`; such a
   * source is not stacked. Default: as many as `rows`.
   */
  readonly scaleRows?: number;
  /** table4 only: the values of the 16 codes. */
  readonly table?: Float32Array;
  /** Types with scales only: stored column j multiplies input `columnOrder[j]`; a permutation of the columns. Default: in order. */
  readonly columnOrder?: Int32Array;
  /** Used in error messages. */
  readonly name: string;
}

export interface MatrixOptions {
  /**
   * Promises that the sources' files do not change while the matrix lives. A matrix that the backend can multiply in place is then
   * not copied: it keeps its files mapped and has no packed bytes. Default: false.
   */
  readonly inPlace?: boolean | undefined;
  /**
   * Promises that the sources' files do not change until the matrix is packed. Where the backend can multiply out of the files
   * until then, `createMatrix` only checks the matrix and leaves packing to `packMore`; packed bytes exist once it is done. `inPlace`
   * takes precedence. Default: false.
   */
  readonly packLater?: boolean | undefined;
}

export interface VectorSource {
  readonly type: "f32" | "f16" | "bf16";
  readonly length: number;
  readonly bytes: TensorBytes;
  readonly name: string;
}

/** What describes a packed matrix, apart from its bytes. */
export interface PackedForm {
  readonly type: WeightType;
  readonly rows: number;
  readonly cols: number;
  /** Only for types with separate scales. */
  readonly groupSize?: number | undefined;
  readonly hasZeros?: boolean | undefined;
}
