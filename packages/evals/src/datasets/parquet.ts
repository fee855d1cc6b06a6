import { basename } from "node:path";
import type { EvalCase } from "../cases/eval-case.js";
import { CaseIds } from "./case-ids.js";
import { parseCase } from "./case-record.js";
import { cellValue } from "./cell-value.js";
import type { Dataset } from "./dataset.js";
import type { FieldRecord } from "./fields.js";
import { ParquetFile } from "./parquet-file.js";
import { invalidFile, type Place, quoted } from "./place.js";

/** How a Parquet file is read as a dataset. */
export interface ParquetOptions {
  /** The column of a case's field, such as `{input: "question", expected: "answer"}`; others keep their names. */
  readonly columns?: Readonly<Record<string, string>>;
}

/** Cases from the rows of a Parquet file. Memory: one row group. Fields that are lists or objects may be JSON text. */
export async function parquetDataset(path: string, options: ParquetOptions = {}): Promise<Dataset> {
  const file = await ParquetFile.open(path);
  const { numRows, columns } = file;
  await file.close();
  const renamed = new Map<string, string>();
  for (const [field, column] of Object.entries(options.columns ?? {})) {
    if (!columns.includes(column)) {
      throw invalidFile(
        path,
        `has no column ${quoted(column)} for the field "${field}"; it has ${columns.map(quoted).join(", ")}`,
      );
    }
    renamed.set(column, field);
  }
  if (numRows === 0) throw invalidFile(path, "holds no cases");
  return { name: basename(path), size: numRows, cases: () => readCases(path, renamed) };
}

async function* readCases(path: string, renamed: ReadonlyMap<string, string>): AsyncGenerator<EvalCase> {
  const ids = new CaseIds();
  for await (const { record, place } of readParquetRows(path)) {
    const named = Object.entries(record).map(([column, value]): [string, unknown] => {
      const name = renamed.get(column) ?? column;
      return [name, typeof value === "string" ? cellValue(name, value, place) : value];
    });
    yield parseCase(Object.fromEntries(named), place, ids, () => JSON.stringify(record, bigintText));
  }
}

function bigintText(_name: string, value: unknown): unknown {
  return typeof value === "bigint" ? String(value) : value;
}

export interface ParquetRow {
  readonly record: FieldRecord;
  readonly place: Place;
}

/** The rows of a Parquet file; `columns` are those that are read, by default all. */
export async function* readParquetRows(
  path: string,
  columns?: readonly string[],
): AsyncGenerator<ParquetRow> {
  const file = await ParquetFile.open(path);
  try {
    let number = 0;
    for await (const rows of file.rowGroups(columns ?? file.columns)) {
      for (const record of rows) {
        number++;
        yield { record, place: { path, unit: "row", number } };
      }
    }
  } finally {
    await file.close();
  }
}
