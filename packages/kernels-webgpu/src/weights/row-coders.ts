import { type MatrixSource, type WeightType, weightTypes } from "@octavo/kernels";
import { OctavoError } from "@octavo/protocol/errors";
import type { CodeType, MatrixForm } from "../wgsl/matrix-forms.js";
import { type BlockTarget, blockTypes, valueTypes } from "./block-types.js";
import { isHalf, toHalfBits } from "./half.js";

/** Turns a row of a source into a row of a form. */
export interface RowCoder {
  readonly form: MatrixForm;
  /** Bytes of a row in the source. */
  readonly rowBytes: number;
  /** Row `row` of the source, whose bytes are given, into `target`, whose codes are then those of the form. */
  code(bytes: Uint8Array, row: number, target: RowTarget): void;
}

/** One row: words of floats, or codes with scales. */
export interface RowTarget extends BlockTarget {
  readonly words: Uint32Array;
}

export function invalidTensor(name: string, problem: string): OctavoError {
  return new OctavoError("artifact_invalid", `Tensor ${name}: ${problem}.`);
}

/** Arrays beside a source's values, read as they stand. */
export interface SourceArrays {
  readonly scales: Float32Array | undefined;
  readonly zeros: Float32Array | undefined;
}

export function rowCoder(source: MatrixSource, arrays: SourceArrays): RowCoder {
  const { type, cols, name } = source;
  const { columns, bytes } = weightTypes[type];
  const rowBytes = (cols / columns) * bytes;
  if (type === "f32" || type === "f16" || type === "bf16") return floatCoder(type, rowBytes, name);
  const block = blockTypes[type];
  if (block !== undefined) {
    const { codes, scales, group, read } = block;
    return {
      form: { codes, scales, group },
      rowBytes,
      code: (row, _index, target) => {
        for (let at = 0, column = 0; at < rowBytes; at += bytes, column += columns)
          read(row, at, column, target);
        checkFinite(target.pairs, name);
        checkFinite(target.supers, name);
      },
    };
  }
  const values = valueTypes[type];
  if (values !== undefined) {
    return valueCoder(name, cols, rowBytes, (row, _index, to) => {
      for (let at = 0, column = 0; at < rowBytes; at += bytes, column += columns) values(row, at, column, to);
    });
  }
  return groupedCoder(source, arrays);
}

function floatCoder(codes: CodeType & ("f32" | "f16" | "bf16"), rowBytes: number, name: string): RowCoder {
  const exponents = { f32: 0x7f800000, f16: 0x7c007c00, bf16: 0x7f807f80 }[codes];
  return {
    form: { codes, scales: "none", group: 32 },
    rowBytes,
    code: (bytes, row, { words }) => {
      new Uint8Array(words.buffer, words.byteOffset, rowBytes).set(bytes);
      for (let i = 0; i < words.length; i++) {
        const exponent = (words[i] ?? 0) & exponents;
        const low = codes === "f32" ? 0 : exponents & 0xffff;
        const high = exponents & 0xffff0000;
        if ((exponent & high) >>> 0 === high >>> 0 || (low !== 0 && (exponent & low) === low))
          throw invalidTensor(name, `a value of row ${row} is not finite`);
      }
    },
  };
}

function checkFinite(values: Float32Array, name: string): void {
  for (const value of values) if (!Number.isFinite(value)) throw invalidTensor(name, "a scale is not finite");
}

/** Decodes to f16. */
function valueCoder(
  name: string,
  cols: number,
  rowBytes: number,
  decode: (bytes: Uint8Array, row: number, values: Float32Array) => void,
): RowCoder {
  const values = new Float32Array(cols);
  return {
    form: { codes: "f16", scales: "none", group: 32 },
    rowBytes,
    code: (bytes, row, { words }) => {
      decode(bytes, row, values);
      const halves = new Uint16Array(words.buffer, words.byteOffset, words.length * 2);
      for (let i = 0; i < cols; i++) {
        const half = toHalfBits(values[i] ?? 0);
        if ((half & 0x7c00) === 0x7c00)
          throw invalidTensor(
            name,
            `a value of row ${row} is not finite, or too large for f16, in which a GPU keeps it`,
          );
        halves[i] = half;
      }
    },
  };
}

/** Code `i` of a row of a type with scales of its own. */
const fields: Readonly<Partial<Record<WeightType, (row: Uint8Array, i: number) => number>>> = {
  int8: (row, i) => ((row[i] ?? 0) << 24) >> 24,
  uint8: (row, i) => row[i] ?? 0,
  int4: (row, i) => ((row[i >> 1] ?? 0) >> (4 * (i & 1))) & 15,
  table4: (row, i) => ((row[i >> 1] ?? 0) >> (4 * (i & 1))) & 15,
  int2: (row, i) => ((row[i >> 2] ?? 0) >> (2 * (i & 3))) & 3,
  int3: (row, i) => (((row[(3 * i) >> 3] ?? 0) | ((row[((3 * i) >> 3) + 1] ?? 0) << 8)) >> ((3 * i) & 7)) & 7,
  f8_e4m3: (row, i) => e4m3Values[row[i] ?? 0] ?? 0,
};

/** 1 sign, 4 exponent bits of bias 7, 3 mantissa bits; all ones are NaN, and there is no infinity. */
const e4m3Values = Float32Array.from({ length: 256 }, (_, byte) => {
  const [exponent, mantissa] = [(byte >> 3) & 15, byte & 7];
  if ((byte & 0x7f) === 0x7f) return Number.NaN;
  const magnitude = exponent === 0 ? mantissa / 512 : (1 + mantissa / 8) * 2 ** (exponent - 7);
  return byte >= 128 ? -magnitude : magnitude;
});

function groupedCoder(source: MatrixSource, { scales, zeros }: SourceArrays): RowCoder {
  const { type, cols, rows, name, groupSize = cols, scaleRows = rows, table, columnOrder } = source;
  const { columns, bytes } = weightTypes[type];
  const rowBytes = Math.ceil((cols / columns) * bytes);
  const field = fields[type];
  if (field === undefined || scales === undefined)
    throw new OctavoError(
      "artifact_unsupported",
      `Tensor ${name} is stored as ${type}, which this backend does not read.`,
    );
  const groups = Math.ceil(cols / groupSize);
  const defaultZero = type === "int4" ? 8 : 0;
  const keepsCodes = ["int2", "int3", "int4", "int8"].includes(type) && columnOrder === undefined;
  const groupOf = (row: number, group: number): number => (row % scaleRows) * groups + group;
  if (!keepsCodes) {
    return valueCoder(name, cols, rowBytes, (row, index, values) => {
      for (let i = 0; i < cols; i++) {
        const group = groupOf(index, Math.floor(i / groupSize));
        const code = field(row, i);
        const value = type === "table4" ? (table?.[code] ?? Number.NaN) : code;
        values[columnOrder?.[i] ?? i] = (scales[group] ?? 0) * (value - (zeros?.[group] ?? defaultZero));
      }
    });
  }
  const offset = (group: number): number =>
    -Math.fround(Math.fround(scales[group] ?? 0) * (zeros?.[group] ?? (type === "int8" ? 0 : defaultZero)));
  const fits = scales.every((scale, group) => isHalf(scale) && isHalf(offset(group)));
  checkFinite(scales, name);
  if (zeros !== undefined) checkFinite(zeros, name);
  return {
    form: { codes: type === "int8" ? "int8" : "int4", scales: fits ? "halfs" : "floats", group: groupSize },
    rowBytes,
    code: (row, index, { codes, pairs }) => {
      for (let i = 0; i < cols; i++) codes[i] = field(row, i);
      for (let group = 0; group < groups; group++) {
        const at = groupOf(index, group);
        pairs[2 * group] = scales[at] ?? 0;
        pairs[2 * group + 1] = offset(at);
      }
    },
  };
}
