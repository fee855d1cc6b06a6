import { once } from "node:events";
import { basename, extname } from "node:path";
import { CsvError, parse, type Parser } from "csv-parse";
import type { EvalCase } from "../cases/eval-case.js";
import { type ByteSource, fileSource } from "./byte-source.js";
import { CaseIds } from "./case-ids.js";
import { parseCase } from "./case-record.js";
import { cellValue } from "./cell-value.js";
import type { Dataset } from "./dataset.js";
import type { FieldRecord } from "./fields.js";
import { maxLineBytes, readLines } from "./lines.js";
import { invalidFile, invalidRecord, type Place, quoted } from "./place.js";

/** How a CSV file is read as a dataset. */
export interface CsvOptions {
  /** Default: a tab for `.tsv`, else a comma. */
  readonly delimiter?: string;
  /** The column of a case's field, such as `{input: "Question", expected: "Right answer"}`; others keep their names. */
  readonly columns?: Readonly<Record<string, string>>;
}

/**
 * RFC 4180: the first row names the columns, cells in quotes hold delimiters, line ends and doubled quotes. An empty cell
 * is an absent field. Cells of fields that are lists or objects hold JSON; `tags` may also be separated by commas.
 */
export function csvDataset(file: string | ByteSource, options: CsvOptions = {}): Dataset {
  const source = typeof file === "string" ? fileSource(file) : file;
  return { name: basename(source.path), size: undefined, cases: () => readCases(source, options) };
}

async function* readCases(source: ByteSource, options: CsvOptions): AsyncGenerator<EvalCase> {
  const ids = new CaseIds();
  let header: readonly string[] | undefined;
  let isEmpty = true;
  for await (const { cells, place } of readRows(source, options)) {
    if (header === undefined) {
      header = parseHeader(cells, options, place);
      continue;
    }
    isEmpty = false;
    if (cells.length !== header.length) {
      throw invalidRecord(
        place,
        undefined,
        `has ${cells.length} cells, but the header has ${header.length}; put cells that hold delimiters or quotes in quotes`,
      );
    }
    yield parseCase(rowRecord(header, cells, place), place, ids, () => JSON.stringify(cells));
  }
  if (header === undefined || isEmpty) throw invalidFile(source.path, "holds no cases");
}

interface Row {
  readonly cells: readonly string[];
  /** The line that the row starts at. */
  readonly place: Place;
}

async function* readRows(source: ByteSource, options: CsvOptions): AsyncGenerator<Row> {
  // of the row that is being parsed: known as soon as the row before it ends, not when that is read
  let line = 1;
  const startOf = new WeakMap<readonly string[], number>();
  const parser = parse({
    delimiter: options.delimiter ?? (extname(source.path).toLowerCase() === ".tsv" ? "\t" : ","),
    relax_column_count: true,
    record_delimiter: ["\r\n", "\n"],
    skip_empty_lines: true,
    max_record_size: maxLineBytes,
    on_record: (cells, { lines }) => {
      startOf.set(cells, line);
      line = lines + 1;
      return cells;
    },
  });
  const feeding = feed(source, parser);
  // the parser is destroyed with this error, which then comes out of reading it
  feeding.catch(() => {});
  try {
    for await (const cells of parser as AsyncIterable<readonly string[]>) {
      yield { cells, place: { path: source.path, unit: "line", number: startOf.get(cells) ?? line } };
    }
    await feeding;
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    throw invalidRecord(
      { path: source.path, unit: "line", number: line },
      undefined,
      csvProblems[error.code] ?? `cannot be read as CSV: ${error.message}`,
      error,
    );
  } finally {
    parser.destroy();
  }
}

async function feed(source: ByteSource, parser: Parser): Promise<void> {
  try {
    for await (const lines of readLines(source)) {
      for (const { text } of lines) {
        if (parser.destroyed) return;
        if (!parser.write(`${text}\n`)) await Promise.race([once(parser, "drain"), once(parser, "close")]);
      }
    }
    parser.end();
  } catch (error) {
    parser.destroy(error instanceof Error ? error : undefined);
    throw error;
  }
}

const csvProblems: Partial<Record<CsvError["code"], string>> = {
  CSV_QUOTE_NOT_CLOSED: "begins a row with a quote that is never closed",
  CSV_MAX_RECORD_SIZE: `begins a row of more than ${maxLineBytes} bytes; is a quote not closed?`,
  CSV_INVALID_CLOSING_QUOTE: "begins a row with a misplaced quote; quotes inside cells are doubled",
  INVALID_OPENING_QUOTE: "begins a row with a misplaced quote; cells with quotes are put in quotes",
};

function parseHeader(cells: readonly string[], options: CsvOptions, place: Place): readonly string[] {
  const names = cells.map((cell) => cell.trim());
  const repeated = names.find((name, index) => names.indexOf(name) !== index);
  if (repeated !== undefined) {
    throw invalidRecord(place, undefined, `names the column ${quoted(repeated)} twice`);
  }
  const renamed = new Map<string, string>();
  for (const [field, column] of Object.entries(options.columns ?? {})) {
    if (!names.includes(column)) {
      throw invalidRecord(
        place,
        undefined,
        `has no column ${quoted(column)} for the field "${field}"; it has ${names.map(quoted).join(", ")}`,
      );
    }
    renamed.set(column, field);
  }
  const fields = names.map((name) => renamed.get(name) ?? name);
  const clash = fields.find((name, index) => name !== "" && fields.indexOf(name) !== index);
  if (clash !== undefined) {
    throw invalidRecord(place, undefined, `has a column "${clash}" beside the one that is mapped to it`);
  }
  return fields;
}

function rowRecord(header: readonly string[], cells: readonly string[], place: Place): FieldRecord {
  const entries = header.flatMap((name, index): [string, unknown][] => {
    const cell = cells[index] ?? "";
    return cell === "" || name === "" ? [] : [[name, cellValue(name, cell, place)]];
  });
  return Object.fromEntries(entries);
}
