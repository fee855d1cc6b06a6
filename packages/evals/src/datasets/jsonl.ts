import { basename } from "node:path";
import { isRecord } from "@octavo/protocol";
import type { EvalCase } from "../cases/eval-case.js";
import { type ByteSource, fileSource } from "./byte-source.js";
import { CaseIds } from "./case-ids.js";
import { parseCase } from "./case-record.js";
import type { Dataset } from "./dataset.js";
import type { FieldRecord } from "./fields.js";
import { type Line, readLines } from "./lines.js";
import { invalidFile, invalidRecord, type Place, quoted } from "./place.js";

/** One JSON object a line, each a case as `parseCase` takes them. Memory: one piece of the file and one line. */
export function jsonlDataset(file: string | ByteSource): Dataset {
  const source = typeof file === "string" ? fileSource(file) : file;
  return { name: basename(source.path), size: undefined, cases: () => readCases(source) };
}

async function* readCases(source: ByteSource): AsyncGenerator<EvalCase> {
  const ids = new CaseIds();
  for await (const lines of readJsonLines(source)) {
    for (const { record, place, text } of lines) yield parseCase(record, place, ids, () => text);
  }
}

export interface JsonLine {
  readonly record: FieldRecord;
  readonly place: Place;
  readonly text: string;
}

/**
 * The objects of JSON lines, those of one piece of the file at a time, each parsed when it is reached; empty lines are
 * passed over.
 * @throws OctavoError `dataset_invalid`, also when there is none
 */
export async function* readJsonLines(source: ByteSource): AsyncGenerator<Iterable<JsonLine>> {
  let isEmpty = true;
  for await (const lines of readLines(source)) {
    const filled = lines.filter(({ text }) => text.trim() !== "");
    if (filled.length === 0) continue;
    isEmpty = false;
    yield parseLines(filled, source.path);
  }
  if (isEmpty) throw invalidFile(source.path, "holds no cases");
}

function* parseLines(lines: readonly Line[], path: string): Generator<JsonLine> {
  for (const line of lines) {
    const place: Place = { path, unit: "line", number: line.number };
    yield { record: parseLine(line, place), place, text: line.text };
  }
}

function parseLine(line: Line, place: Place): FieldRecord {
  let value: unknown;
  try {
    value = JSON.parse(line.text);
  } catch (error) {
    const reason = error instanceof Error ? error.message : "unreadable";
    throw invalidRecord(place, undefined, `is not JSON (${reason}); write one object a line`, error);
  }
  if (isRecord(value)) return value;
  throw invalidRecord(place, undefined, `must be a JSON object, but is ${quoted(value)}`);
}
