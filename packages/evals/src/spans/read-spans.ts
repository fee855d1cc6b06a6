import type { Stats } from "node:fs";
import { open, readdir, readFile, stat } from "node:fs/promises";
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
 * Parquet file as `octavo traces export` writes it. Of a folder, all of its files, as `spanFilesOf` finds them. The last of several
 * lines is left out where it is cut off: whoever writes the file has not ended it yet, or was killed. Memory: a line, or a row group.
 *
 * @throws OctavoError `dataset_invalid` that names the file and the line
 */
export async function* readSpanValues(path: string): AsyncGenerator {
  for (const file of await spanFilesOf(path)) yield* valuesOfFile(file, (await statOf(file)).size);
}

/**
 * A file itself; of a folder, its `.jsonl` and `.parquet` files by name, and those of the folders in it whose names end so.
 * @throws OctavoError `dataset_invalid` where there is none
 */
export async function spanFilesOf(path: string): Promise<readonly string[]> {
  if (!(await statOf(path)).isDirectory()) return [path];
  const names = await readdir(path);
  const files = names.filter((name) => /\.(?:jsonl|parquet)$/.test(name)).toSorted();
  if (files.length === 0)
    throw new OctavoError("dataset_invalid", `${path} holds no spans: no file ends in .jsonl or .parquet`, {
      param: path,
    });
  return (await Promise.all(files.map((name) => spanFilesOf(join(path, name))))).flat();
}

async function statOf(path: string): Promise<Stats> {
  return stat(path).catch((cause: unknown) => {
    throw new OctavoError("dataset_invalid", `the spans in ${path} cannot be read: ${systemProblem(cause)}`, {
      param: path,
      cause,
    });
  });
}

async function* valuesOfFile(path: string, size: number): AsyncGenerator {
  if (path.endsWith(".parquet")) {
    for await (const { record } of readParquetRows(path)) yield record;
    return;
  }
  let brokenLine: number | undefined;
  for await (const lines of readLines(fileSource(path), mostWholeBytes, { mayBeCutOff: true })) {
    for (const { number, text } of lines) {
      if (brokenLine !== undefined) throw notJson(path, brokenLine);
      if (text.trim() === "") continue;
      const parsed = parseJson(text);
      if (parsed !== undefined) {
        yield parsed.value;
        continue;
      }
      if (number > 1 || size > mostWholeBytes) {
        brokenLine = number;
        continue;
      }
      yield await wholeJson(path);
      return;
    }
  }
  if (brokenLine !== undefined && (brokenLine === 1 || (await endsLine(path))))
    throw notJson(path, brokenLine);
}

function notJson(path: string, line: number): OctavoError {
  return new OctavoError("dataset_invalid", `${path}, line ${line}: not JSON`, { param: path });
}

/** Whether its last byte is a line feed. */
async function endsLine(path: string): Promise<boolean> {
  await using file = await open(path);
  const { size } = await file.stat();
  const { buffer } = await file.read(Buffer.alloc(1), 0, 1, Math.max(0, size - 1));
  return buffer[0] === 0x0a;
}

async function wholeJson(path: string): Promise<unknown> {
  try {
    return JSON.parse(await readFile(path, "utf8"));
  } catch (cause) {
    throw new OctavoError("dataset_invalid", `${path}: neither JSON nor JSON lines`, { param: path, cause });
  }
}
