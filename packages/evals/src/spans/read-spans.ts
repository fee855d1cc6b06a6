import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { OctavoError, systemProblem, parseJson } from "@octavo/protocol";
import { fileSource } from "../datasets/byte-source.js";
import { readLines } from "../datasets/lines.js";
import { readParquetRows } from "../datasets/parquet.js";
import type { Observation } from "../checks/observation.js";
import { observationsFromSpans, type SpanReading } from "./from-spans.js";

/** A file that is one JSON value is read whole, as lines are: longer ones are written a value per line. */
const mostWholeBytes = 256 * 2 ** 20;

/** Observations of a file or folder of spans, in its order. Throws and memory: as `readSpanValues`. */
export async function* readSpans(path: string, reading: SpanReading): AsyncGenerator<Observation> {
  for await (const value of readSpanValues(path)) yield* observationsFromSpans(value, reading);
}

/**
 * The JSON values of a file of spans, in its order: JSON lines (rows of a store, OTLP bodies, spans), one JSON value, or a
 * Parquet file as `octavo traces export` writes it. Of a folder, all of its `.jsonl` and `.parquet` files, as a store has them.
 * Memory: a line, or a row group.
 *
 * @throws OctavoError `dataset_invalid` that names the file and the line
 */
export async function* readSpanValues(path: string): AsyncGenerator {
  const found = await stat(path).catch((cause: unknown) => {
    throw new OctavoError("dataset_invalid", `the spans in ${path} cannot be read: ${systemProblem(cause)}`, {
      param: path,
      cause,
    });
  });
  if (!found.isDirectory()) {
    yield* valuesOfFile(path, found.size);
    return;
  }
  const names = await readdir(path);
  const files = names.filter((name) => /\.(?:jsonl|parquet)$/.test(name)).toSorted();
  if (files.length === 0)
    throw new OctavoError("dataset_invalid", `${path} holds no spans: no file ends in .jsonl or .parquet`, {
      param: path,
    });
  for (const name of files) yield* readSpanValues(join(path, name));
}

async function* valuesOfFile(path: string, size: number): AsyncGenerator {
  if (path.endsWith(".parquet")) {
    for await (const { record } of readParquetRows(path)) yield record;
    return;
  }
  for await (const lines of readLines(fileSource(path), mostWholeBytes)) {
    for (const { number, text } of lines) {
      if (text.trim() === "") continue;
      const parsed = parseJson(text);
      if (parsed !== undefined) {
        yield parsed.value;
        continue;
      }
      if (number > 1 || size > mostWholeBytes)
        throw new OctavoError("dataset_invalid", `${path}, line ${number}: not JSON`, { param: path });
      yield await wholeJson(path);
      return;
    }
  }
}

async function wholeJson(path: string): Promise<unknown> {
  try {
    return JSON.parse(await readFile(path, "utf8"));
  } catch (cause) {
    throw new OctavoError("dataset_invalid", `${path}: neither JSON nor JSON lines`, { param: path, cause });
  }
}
