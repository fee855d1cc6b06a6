import { createHash } from "node:crypto";
import { type FileHandle, open } from "node:fs/promises";
import { OctavoError } from "@octavo/protocol";
import type { CaseRow } from "./case-row.js";

const readBytes = 1 << 16;
const longestLine = 64 << 20;

/**
 * Rows of a run on disk, one JSON object a line, so that a run that was cut off goes on where it was: a line that was torn is
 * cut away. The first line says what was asked of whom; rows of other questions are never mixed. Rows in which an answer or a
 * score failed are not kept: they are tried again.
 */
export class CaseJournal {
  readonly #file: FileHandle;
  /** Where each row stands, by dataset and case. */
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
    const header = `{"journal":"octavo-cases","version":1,"question":"${digest}"}\n`;
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
          const key = keyOfLine(line);
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

  async read(dataset: string, caseId: string): Promise<CaseRow | undefined> {
    const place = this.#places.get(keyOf(dataset, caseId));
    if (place === undefined) return undefined;
    const [offset, bytes] = place;
    const { buffer } = await this.#file.read(Buffer.alloc(bytes), 0, bytes, offset);
    return rowOfLine(buffer);
  }

  /** @throws OctavoError `disk_full` */
  async append(rows: readonly CaseRow[]): Promise<void> {
    const lines = rows.filter(isWhole).map((row) => ({
      key: keyOf(row.dataset, row.caseId),
      bytes: Buffer.from(`${JSON.stringify(row)}\n`),
    }));
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

function keyOf(dataset: string, caseId: string): string {
  return JSON.stringify([dataset, caseId]);
}

function keyOfLine(line: Buffer): string | undefined {
  const row = rowOfLine(line);
  return row === undefined ? undefined : keyOf(row.dataset, row.caseId);
}

/** Lines are this class's own: what has the names of a row is one. */
function rowOfLine(line: Buffer): CaseRow | undefined {
  try {
    const value: unknown = JSON.parse(line.toString());
    return typeof value === "object" && value !== null && "caseId" in value && "answers" in value
      ? (value as CaseRow)
      : undefined;
  } catch {
    return undefined;
  }
}
