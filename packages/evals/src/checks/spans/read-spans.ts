import { createReadStream } from "node:fs";
import { readFile, stat } from "node:fs/promises";
import { createInterface } from "node:readline";
import { OctavoError } from "@octavo/protocol";
import { asyncBufferFromFile, parquetReadObjects } from "hyparquet";
import { observationsFromSpans, type SpanReading } from "../from-spans.js";
import type { Observation } from "../observation.js";

/** A file that is one JSON value is read whole: longer ones are written a value per line. */
const mostWholeBytes = 512 * 2 ** 20;

/**
 * Observations of a file of spans, in its order: JSON lines (rows of a store, OTLP bodies, spans), one JSON value, or a
 * Parquet file as `octavo traces export` writes it.
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
    yield* observationsFromSpans(await parquetRows(path), reading);
    return;
  }
  const lines = createInterface({
    input: createReadStream(path, "utf8"),
    crlfDelay: Number.POSITIVE_INFINITY,
  });
  let number = 0;
  for await (const line of lines) {
    number += 1;
    if (line.trim() === "") continue;
    let value: unknown;
    try {
      value = JSON.parse(line);
    } catch (cause) {
      if (number > 1 || size > mostWholeBytes)
        throw new OctavoError("dataset_invalid", `${path}, line ${number}: not JSON`, { param: path, cause });
      lines.close();
      yield* observationsFromSpans(await wholeJson(path), reading);
      return;
    }
    yield* observationsFromSpans(value, reading);
  }
}

async function wholeJson(path: string): Promise<unknown> {
  try {
    return JSON.parse(await readFile(path, "utf8"));
  } catch (cause) {
    throw new OctavoError("dataset_invalid", `${path}: neither JSON nor JSON lines`, { param: path, cause });
  }
}

async function parquetRows(path: string): Promise<readonly unknown[]> {
  try {
    return await parquetReadObjects({ file: await asyncBufferFromFile(path) });
  } catch (cause) {
    throw new OctavoError("dataset_invalid", `${path}: not a Parquet file that can be read`, {
      param: path,
      cause,
    });
  }
}
