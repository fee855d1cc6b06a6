import { open, stat } from "node:fs/promises";
import { extname } from "node:path";
import { isRecord, systemProblem } from "@octavo/protocol";
import { fileSource } from "./byte-source.js";
import { isSpanValue } from "../spans/span-record.js";
import { hleColumns } from "./formats/hle.js";
import { longBenchFields } from "./formats/longbench-v2.js";
import { mmluProColumns } from "./formats/mmlu-pro.js";
import { readJsonArray } from "./json-array.js";
import { readJsonLines } from "./jsonl.js";
import { ParquetFile } from "./parquet-file.js";
import { invalidFile } from "./place.js";

/** Formats of datasets that `openDataset` reads; without a name it tells by the content. */
export const datasetFormats = [
  "jsonl",
  "json",
  "csv",
  "parquet",
  "mmlu-pro",
  "longbench-v2",
  "hle",
  "bfcl",
  "promptfoo",
  "spans",
] as const;
/** A form that files of cases come in. */
export type DatasetFormat = (typeof datasetFormats)[number];

const sniffedBytes = 4096;
/** Columns of a span store. */
const spanColumns = ["trace_id", "span_id", "start_ms", "duration_ms"];

/**
 * What a file holds, by its content where that tells and by its extension where it does not. Known benchmarks are told by
 * their columns or the fields of their first record.
 * @throws OctavoError `dataset_invalid` for files that are none of it
 */
export async function detectFormat(path: string): Promise<DatasetFormat> {
  if (await isFolder(path)) return "spans";
  const start = await readStart(path);
  const extension = extname(path).toLowerCase();
  if (start.subarray(0, 4).toString("latin1") === "PAR1") return detectParquet(path);
  if (extension === ".yaml" || extension === ".yml") return "promptfoo";
  if (extension === ".csv" || extension === ".tsv") return "csv";
  const text = start
    .toString("utf8")
    .replace(/^\uFEFF/, "")
    .trimStart();
  if (text.startsWith("[")) return detectArray(path);
  if (text.startsWith("{")) return detectLines(path);
  if (start.includes(0)) {
    throw invalidFile(path, `is of no known format; known are ${datasetFormats.join(", ")}`);
  }
  if (text === "") throw invalidFile(path, "is empty");
  throw invalidFile(
    path,
    `is of no known format: it begins with neither { nor [ nor PAR1, and its name ends in neither .csv, .tsv nor .yaml`,
  );
}

async function isFolder(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );
}

async function readStart(path: string): Promise<Buffer> {
  try {
    await using handle = await open(path);
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(sniffedBytes), 0, sniffedBytes, 0);
    return buffer.subarray(0, bytesRead);
  } catch (error) {
    throw invalidFile(path, `cannot be read: ${systemProblem(error)}`, error);
  }
}

async function detectParquet(path: string): Promise<DatasetFormat> {
  const file = await ParquetFile.open(path);
  const columns = new Set(file.columns);
  await file.close();
  if (mmluProColumns.every((name) => columns.has(name))) return "mmlu-pro";
  if (hleColumns.every((name) => columns.has(name))) return "hle";
  return spanColumns.every((name) => columns.has(name)) ? "spans" : "parquet";
}

async function detectArray(path: string): Promise<DatasetFormat> {
  for await (const { value } of readJsonArray(fileSource(path))) {
    if (isSpanValue(value)) return "spans";
    return isRecord(value) && longBenchFields.every((name) => name in value) ? "longbench-v2" : "json";
  }
  throw invalidFile(path, "holds no cases");
}

async function detectLines(path: string): Promise<DatasetFormat> {
  for await (const lines of readJsonLines(fileSource(path))) {
    for (const { record } of lines) {
      if (isSpanValue(record)) return "spans";
      const isTools = record["function"] !== undefined || record["involved_classes"] !== undefined;
      return record["question"] !== undefined && isTools ? "bfcl" : "jsonl";
    }
  }
  throw invalidFile(path, "holds no cases");
}
