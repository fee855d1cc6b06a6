import { OctavoError } from "@octavo/protocol/errors";
import {
  type MatrixSource,
  type TensorBytes,
  type VectorSource,
  type WeightType,
  weightTypes,
} from "../weights.js";

/** Rows and columns are held in 32-bit integers by token ids and by the kernels' indices. */
const mostRows = 2 ** 31 - 1;

/** Refuses sources whose shapes, types and byte counts do not fit together, naming the tensor. */
export function checkMatrixSources(sources: readonly MatrixSource[]): void {
  const [first] = sources;
  if (first === undefined) throw new OctavoError("internal_error", "A matrix needs at least one source.");
  let rows = 0;
  for (const source of sources) {
    checkMatrixSource(source);
    if (source.cols !== first.cols || source.type !== first.type || source.groupSize !== first.groupSize) {
      const shapeOf = (one: MatrixSource): string => `${one.type}, ${one.cols} columns`;
      throw invalid(
        source.name,
        `${shapeOf(source)} cannot be stacked under ${first.name} (${shapeOf(first)}): they must agree`,
      );
    }
    if ((source.zeros === undefined) !== (first.zeros === undefined)) {
      throw invalid(
        source.name,
        `it and ${first.name} are stacked, so both or neither must have zero points`,
      );
    }
    if (!areEqual(source.columnOrder, first.columnOrder)) {
      throw invalid(
        source.name,
        `it and ${first.name} are stacked, so their columns must be in the same order`,
      );
    }
    if (!areEqual(source.table, first.table)) {
      throw invalid(source.name, `it and ${first.name} are stacked, so they must have one table`);
    }
    if (source.scaleRows !== undefined && (sources.length > 1 || isPlainScaled(source.type))) {
      throw invalid(
        source.name,
        `it shares scales between rows, which ${source.type} or stacking does not allow`,
      );
    }
    rows += source.rows;
  }
  if (rows > mostRows) throw invalid(first.name, `${rows} rows are more than ${mostRows}`);
}

function checkMatrixSource(source: MatrixSource): void {
  const { name, type, rows, cols } = source;
  const block = Object.hasOwn(weightTypes, type) ? weightTypes[type] : undefined;
  if (block === undefined)
    throw new OctavoError("artifact_unsupported", `Tensor ${name} has the unknown type ${type}.`);
  checkCount(name, "rows", rows);
  checkCount(name, "columns", cols);
  if (cols % block.columns !== 0) {
    throw invalid(
      name,
      `${type} stores ${block.columns} columns at a time, which does not divide its ${cols} columns`,
    );
  }
  checkBytes(name, "values", source.bytes, ((rows * cols) / block.columns) * block.bytes);
  if (!groupedTypes.has(type)) return;
  const { scales, zeros } = source;
  const groupSize = checkGroupSize(source);
  if (scales === undefined) throw invalid(name, `${type} needs scales`);
  checkColumnOrder(source);
  checkTable(source);
  const { scaleRows = rows } = source;
  checkCount(name, "rows of scales", scaleRows);
  const scaleBytes = scaleRows * Math.ceil(cols / groupSize) * 4;
  checkBytes(name, "scales", scales, scaleBytes);
  if (zeros === undefined) return;
  if (type === "int8" || type === "f8_e4m3") throw invalid(name, `${type} has no zero points`);
  checkBytes(name, "zeros", zeros, scaleBytes);
}

/** Types whose scales are arrays of their own. */
const groupedTypes: ReadonlySet<WeightType> = new Set([
  "int2",
  "int3",
  "int4",
  "int8",
  "f8_e4m3",
  "uint8",
  "table4",
]);
/** Those of them that are integers in whole units of packing, each row with scales of its own. */
const plainTypes: ReadonlySet<WeightType> = new Set(["int2", "int3", "int4", "int8"]);

/** Types whose every row has scales of its own. */
function isPlainScaled(type: WeightType): boolean {
  return plainTypes.has(type) || !groupedTypes.has(type);
}

function checkGroupSize({ name, type, cols, groupSize }: MatrixSource): number {
  const isWhole = groupSize !== undefined && Number.isInteger(groupSize) && groupSize >= 1;
  if (!plainTypes.has(type)) {
    if (isWhole) return groupSize;
    throw invalid(name, `its group size must be a positive integer, not ${groupSize}`);
  }
  if (isWhole && groupSize % 32 === 0 && cols % groupSize === 0) return groupSize;
  throw invalid(
    name,
    `its group size must be a multiple of 32 that divides its ${cols} columns, not ${groupSize}`,
  );
}

function checkTable({ name, type, table }: MatrixSource): void {
  if (type !== "table4") return;
  if (table?.length !== 16 || !table.every(Number.isFinite)) {
    throw invalid(name, "table4 needs a table of 16 finite values");
  }
}

function checkColumnOrder({ name, cols, columnOrder }: MatrixSource): void {
  if (columnOrder === undefined) return;
  if (columnOrder.length !== cols) {
    throw invalid(name, `its column order has ${columnOrder.length} entries for ${cols} columns`);
  }
  const seen = new Uint8Array(cols);
  for (const column of columnOrder) {
    if (column < 0 || column >= cols || seen[column] === 1) {
      throw invalid(name, `its column order is no permutation: ${column} is out of range or stands twice`);
    }
    seen[column] = 1;
  }
}

function areEqual<T extends Int32Array | Float32Array>(a: T | undefined, b: T | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  return a.length === b.length && a.every((value, i) => value === b[i]);
}

export function checkVectorSources(sources: readonly VectorSource[]): void {
  if (sources.length === 0) throw new OctavoError("internal_error", "A vector needs at least one source.");
  for (const { name, type, length, bytes } of sources) {
    if (type !== "f32" && type !== "f16" && type !== "bf16") {
      throw new OctavoError(
        "artifact_unsupported",
        `Tensor ${name} has the type ${String(type)}; vectors are f32, f16 or bf16.`,
      );
    }
    checkCount(name, "elements", length);
    checkBytes(name, "values", bytes, length * weightTypes[type].bytes);
  }
}

function checkCount(name: string, what: string, count: number): void {
  if (!Number.isInteger(count) || count < 1 || count > mostRows) {
    throw invalid(name, `its number of ${what} must be an integer from 1 to ${mostRows}, not ${count}`);
  }
}

function checkBytes(name: string, part: string, bytes: TensorBytes, expected: number): void {
  if ("data" in bytes) {
    if (bytes.data.byteLength !== expected) {
      throw invalid(
        name,
        `its ${part} take ${expected} bytes by its shape, but ${bytes.data.byteLength} were given`,
      );
    }
    return;
  }
  const { file, offset, byteLength } = bytes;
  if (byteLength !== expected) {
    throw invalid(
      name,
      `its ${part} take ${expected} bytes by its shape, but ${byteLength} are claimed in ${file.path}`,
    );
  }
  if (!Number.isInteger(offset) || offset < 0 || offset + byteLength > file.byteLength) {
    throw invalid(
      name,
      `its ${part} lie at bytes ${offset} to ${offset + byteLength} of ${file.path}, which has ${file.byteLength}`,
    );
  }
}

function invalid(name: string, problem: string): OctavoError {
  return new OctavoError("artifact_invalid", `Tensor ${name}: ${problem}.`);
}
