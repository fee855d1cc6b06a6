import { createHash } from "node:crypto";
import { type FileHandle, open } from "node:fs/promises";
import { OctavoError } from "@octavo/protocol";
import type { EvalCase } from "../cases/eval-case.js";
import type { CaseRow } from "./case-row.js";

interface Line {
  readonly key: string;
  readonly row: CaseRow;
}

const readBytes = 1 << 16;
const longestLine = 64 << 20;

/**
 * Rows of a run on disk, one JSON object a line, so that a run that was cut off goes on where it was: a line that was torn is
 * cut away. The first line says what was asked of whom; rows of other questions are never mixed. A row is kept under all that its
 * case says, so that a case that was edited is asked again. Rows in which an answer or a score failed are not kept: they are
 * tried again.
 */
export class CaseJournal {
  readonly #file: FileHandle;
  /** Where each row stands, by dataset and what the case says. */
  readonly #places: Map<string, readonly [offset: number, bytes: number]>;
  #end: number;

  private constructor(file: FileHandle, places: Map<string, readonly [number, number]>, end: number) {
    this.#file = file;
    this.#places = places;
    this.#end = end;
  }

  /**
   * Opens or begins a journal.
   * @param question whatever decides the rows: targets, parameters, evaluators
   * @throws OctavoError `invalid_option` where the file cannot be opened, is something else, or answers another question
   */
  static async open(path: string, question: unknown): Promise<CaseJournal> {
    const digest = createHash("sha256").update(JSON.stringify(question)).digest("hex").slice(0, 32);
    const header = `{"journal":"octavo-cases","version":2,"question":"${digest}"}\n`;
    const file = await open(path, "a+").catch((cause: unknown) => {
      throw new OctavoError(
        "invalid_option",
        `the journal ${path} cannot be opened: ${OctavoError.from(cause).message}`,
        { param: "journal", cause },
      );
    });
    try {
      const { size } = await file.stat();
      if (size === 0) {
        await file.appendFile(header);
        return new CaseJournal(file, new Map(), header.length);
      }
      const places = new Map<string, readonly [number, number]>();
      let end = 0;
      for await (const line of linesOf(file, path)) {
        if (end === 0) checkHeader(path, line.toString(), header);
        else {
          const key = lineOf(line)?.key;
          if (key === undefined)
            throw new OctavoError("invalid_option", `${path} has a line that is no row of a journal`);
          places.set(key, [end, line.length]);
        }
        end += line.length;
      }
      if (end === 0) checkHeader(path, "", header);
      await file.truncate(end);
      return new CaseJournal(file, places, end);
    } catch (thrown) {
      await file.close();
      throw thrown;
    }
  }

  /** Rows that need not be asked for again. */
  get size(): number {
    return this.#places.size;
  }

  async read(dataset: string, evalCase: EvalCase): Promise<CaseRow | undefined> {
    const place = this.#places.get(keyOf(dataset, evalCase));
    if (place === undefined) return undefined;
    const [offset, bytes] = place;
    const { buffer } = await this.#file.read(Buffer.alloc(bytes), 0, bytes, offset);
    return lineOf(buffer)?.row;
  }

  /** @throws OctavoError `disk_full` */
  async append(rows: readonly { readonly row: CaseRow; readonly evalCase: EvalCase }[]): Promise<void> {
    const lines = rows
      .filter(({ row }) => isWhole(row))
      .map(({ row, evalCase }) => {
        const key = keyOf(row.dataset, evalCase);
        return { key, bytes: Buffer.from(`${JSON.stringify({ key, row } satisfies Line)}\n`) };
      });
    if (lines.length === 0) return;
    try {
      await this.#file.appendFile(Buffer.concat(lines.map(({ bytes }) => bytes)));
    } catch (cause) {
      throw new OctavoError(
        "disk_full",
        `the journal cannot be written: ${OctavoError.from(cause).message}`,
        {
          cause,
        },
      );
    }
    for (const { key, bytes } of lines) {
      this.#places.set(key, [this.#end, bytes.length]);
      this.#end += bytes.length;
    }
  }

  close(): Promise<void> {
    return this.#file.close();
  }
}

function checkHeader(path: string, line: string, header: string): void {
  if (line === header) return;
  throw new OctavoError(
    "invalid_option",
    line.startsWith('{"journal":"octavo-cases"')
      ? `the journal ${path} is of a run with other targets, evaluators or parameters: name another file, or remove it`
      : `${path} is not a journal of cases: name another file`,
    { param: "journal" },
  );
}

/** Whole lines with their ends; a last one without an end is left out. */
async function* linesOf(file: FileHandle, path: string): AsyncGenerator<Buffer, void, undefined> {
  const chunk = Buffer.alloc(readBytes);
  let parts: Buffer[] = [];
  let waiting = 0;
  for (let at = 0; ;) {
    const { bytesRead } = await file.read(chunk, 0, chunk.length, at);
    if (bytesRead === 0) return;
    at += bytesRead;
    let start = 0;
    for (let end = chunk.indexOf(10); end >= 0 && end < bytesRead; end = chunk.indexOf(10, start)) {
      yield Buffer.concat([...parts, chunk.subarray(start, end + 1)]);
      parts = [];
      waiting = 0;
      start = end + 1;
    }
    if (start < bytesRead) {
      parts.push(Buffer.from(chunk.subarray(start, bytesRead)));
      waiting += bytesRead - start;
    }
    if (waiting > longestLine)
      throw new OctavoError("invalid_option", `${path} has a line over 64 MiB, which no journal has`);
  }
}

function isWhole({ answers }: CaseRow): boolean {
  return Object.values(answers).every(
    ({ answer, scores }) =>
      answer.failure === undefined && Object.values(scores).every(({ status }) => status !== "failed"),
  );
}

/** Of everything that a case says: another prompt, gold or parameter is another case, whatever its id. */
function keyOf(dataset: string, evalCase: EvalCase): string {
  return createHash("sha256")
    .update(JSON.stringify([dataset, sorted(evalCase)]))
    .digest("hex")
    .slice(0, 32);
}

/** Fields by their names, so that their order in a file says nothing. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .toSorted(([one], [other]) => (one < other ? -1 : 1))
      .map(([name, field]) => [name, sorted(field)]),
  );
}

/** Lines are this class's own: what has the names of one is one. */
function lineOf(line: Buffer): Line | undefined {
  try {
    const value: unknown = JSON.parse(line.toString());
    return typeof value === "object" && value !== null && "key" in value && "row" in value
      ? (value as Line)
      : undefined;
  } catch {
    return undefined;
  }
}
