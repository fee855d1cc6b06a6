import { readFile, stat } from "node:fs/promises";
import { OctavoError, parseJson } from "@octavo/protocol";
import { fileSource } from "../../datasets/byte-source.js";
import { readLines } from "../../datasets/lines.js";
import { readParquetRows } from "../../datasets/parquet.js";
import { observationsFromSpans, type SpanReading } from "./from-spans.js";
import type { Observation } from "../observation.js";

/** A file that is one JSON value is read whole, as lines are: longer ones are written a value per line. */
const mostWholeBytes = 256 * 2 ** 20;

/**
 * Observations of a file of spans, in its order: JSON lines (rows of a store, OTLP bodies, spans), one JSON value, or a
 * Parquet file as `octavo traces export` writes it. Memory: a line, or a row group.
 *
 * @throws OctavoError `dataset_invalid` that names the file and the line
 */
export async function* readSpans(path: string, reading: SpanReading): AsyncGenerator<Observation> {
  const size = await stat(path).then(
    (found) => found.size,
    (cause: unknown) => {
      throw new OctavoError("dataset_invalid", `cannot read the spans in ${path}`, { param: path, cause });
    },
  );
  if (path.endsWith(".parquet")) {
    for await (const { record } of readParquetRows(path)) yield* observationsFromSpans(record, reading);
    return;
  }
  for await (const lines of readLines(fileSource(path), mostWholeBytes)) {
    for (const { number, text } of lines) {
      if (text.trim() === "") continue;
      const parsed = parseJson(text);
      if (parsed !== undefined) {
        yield* observationsFromSpans(parsed.value, reading);
        continue;
      }
      if (number > 1 || size > mostWholeBytes)
        throw new OctavoError("dataset_invalid", `${path}, line ${number}: not JSON`, { param: path });
      yield* observationsFromSpans(await wholeJson(path), reading);
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
