import { createHash } from "node:crypto";
import { type FileHandle, open } from "node:fs/promises";
import { asRecord, OctavoError, parseJson } from "@octavo/protocol";
import { KeyIndex } from "./key-index.js";

/** Longer rows are not kept, and no journal has a longer line. */
const maxLineBytes = 64 << 20;
/** Rows wait in memory for the disk up to this. */
const maxPendingBytes = 1 << 20;
const readBytes = 1 << 16;
/** Where the key stands in a line: `{"key":"..."`. */
const keyStart = '{"key":"'.length;

/** What a journal's rows are. */
interface JournalKind<Row> {
  /** First in the file, so that no other file is ever appended to, such as `{"journal":"octavo-scores","version":1}`. */
  readonly header: string;
  /** In the plural, as errors name them. */
  readonly rows: string;
  /** The row in a line's fields; undefined where there is none. */
  parse(fields: Readonly<Record<string, unknown>>): Row | undefined;
}

/** 32 hexadecimal digits: 128 bits of a SHA-256. */
export function journalKey(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 32);
}

/**
 * Rows on disk by key, one JSON object a line, so that a run that was cut off goes on where it was: a torn last line is cut
 * away. Memory holds the keys and the offsets of their rows.
 */
export class Journal<Row extends object> implements AsyncDisposable {
  readonly #kind: JournalKind<Row>;
  readonly #file: FileHandle;
  readonly #path: string;
  readonly #index = new KeyIndex();
  /** Bytes on disk; rows after them are in `#pending`. */
  #written = 0;
  #pending: { readonly key: string; readonly line: Buffer }[] = [];
  #pendingBytes = 0;
  readonly #unwritten = new Map<string, Row>();
  #writing: Promise<void> | undefined;
  #failure: OctavoError | undefined;

  private constructor(kind: JournalKind<Row>, file: FileHandle, path: string) {
    this.#kind = kind;
    this.#file = file;
    this.#path = path;
  }

  /** @throws OctavoError `invalid_option` where the file cannot be opened or is something else */
  static async open<Row extends object>(path: string, kind: JournalKind<Row>): Promise<Journal<Row>> {
    const file = await open(path, "a+").catch((cause: unknown) => {
      throw refusal(`the journal ${path} cannot be opened: ${OctavoError.from(cause).message}`, cause);
    });
    const journal = new Journal(kind, file, path);
    try {
      await journal.#load();
    } catch (error) {
      await file.close();
      throw error;
    }
    return journal;
  }

  get size(): number {
    return this.#index.size + this.#unwritten.size;
  }

  async read(key: string): Promise<Row | undefined> {
    const unwritten = this.#unwritten.get(key);
    if (unwritten !== undefined) return unwritten;
    const offset = this.#index.get(key);
    if (offset === undefined) return undefined;
    const line = await this.#lineAt(offset);
    // another process that wrote to the same file has moved the rows: then the row is made again
    return keyOf(line) === key ? this.#rowOf(line) : undefined;
  }

  /**
   * Resolves when there is room for more; `flush` waits for the disk.
   * @throws OctavoError `disk_full` once a write has failed
   */
  async append(key: string, row: Row): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure;
    const line = Buffer.from(`${JSON.stringify({ key, ...row })}\n`);
    if (line.length > maxLineBytes) return;
    this.#pending.push({ key, line });
    this.#pendingBytes += line.length;
    this.#unwritten.set(key, row);
    const writing = (this.#writing ??= this.#write());
    if (this.#pendingBytes > maxPendingBytes) await writing;
  }

  async flush(): Promise<void> {
    while (this.#writing !== undefined) await this.#writing;
    if (this.#failure !== undefined) throw this.#failure;
  }

  async close(): Promise<void> {
    try {
      await this.flush();
    } finally {
      await this.#file.close();
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** One write at a time; rows that come meanwhile go with the next. Does not reject: the next caller gets `#failure`. */
  async #write(): Promise<void> {
    try {
      while (this.#pending.length > 0) {
        const rows = this.#pending;
        this.#pending = [];
        this.#pendingBytes = 0;
        await this.#file.appendFile(Buffer.concat(rows.map(({ line }) => line)));
        for (const { key, line } of rows) {
          this.#index.set(key, this.#written);
          this.#unwritten.delete(key);
          this.#written += line.length;
        }
      }
    } catch (cause) {
      const { message } = OctavoError.from(cause);
      const problem = `the journal ${this.#path} cannot be written: ${message}`;
      this.#failure = new OctavoError("disk_full", problem, { cause });
    } finally {
      this.#writing = undefined;
    }
  }

  async #load(): Promise<void> {
    const { header, rows } = this.#kind;
    const { size } = await this.#file.stat();
    let number = 0;
    for await (const line of this.#lines()) {
      number++;
      if (number === 1) {
        if (line !== header) throw refusal(this.#whyForeign(line));
      } else {
        if (this.#rowOf(line) === undefined)
          throw refusal(`${this.#path}, line ${number}: not a row of a journal: remove the line or the file`);
        this.#index.set(keyOf(line), this.#written);
      }
      this.#written += Buffer.byteLength(line) + 1;
    }
    if (number === 0) {
      const { buffer, bytesRead } = await this.#file.read(Buffer.alloc(header.length), 0, header.length, 0);
      const isTornHeader = size <= header.length && header.startsWith(buffer.toString("utf8", 0, bytesRead));
      if (!isTornHeader) throw refusal(`${this.#path} is not a journal of ${rows}: name another file`);
    }
    if (this.#written < size) await this.#file.truncate(this.#written);
    if (number > 0) return;
    await this.#file.appendFile(`${header}\n`);
    this.#written = header.length + 1;
  }

  #whyForeign(line: string): string {
    const { header, rows } = this.#kind;
    const own = asRecord(parseJson(header)?.value);
    const found = asRecord(parseJson(line)?.value);
    return own["question"] !== undefined && found["journal"] === own["journal"]
      ? `the journal ${this.#path} is of a run with other targets, evaluators or parameters: name another file, or remove it`
      : `${this.#path} is not a journal of ${rows}: name another file`;
  }

  /** Whole lines without their ends; a last one that has none is left out. */
  async *#lines(): AsyncGenerator<string, void, undefined> {
    const chunk = Buffer.alloc(readBytes);
    let parts: Buffer[] = [];
    let waiting = 0;
    for (let at = 0; ;) {
      const { bytesRead } = await this.#file.read(chunk, 0, chunk.length, at);
      if (bytesRead === 0) return;
      at += bytesRead;
      let start = 0;
      for (let end = chunk.indexOf(10); end >= 0 && end < bytesRead; end = chunk.indexOf(10, start)) {
        yield Buffer.concat([...parts, chunk.subarray(start, end)]).toString();
        parts = [];
        waiting = 0;
        start = end + 1;
      }
      if (start === bytesRead) continue;
      parts.push(Buffer.from(chunk.subarray(start, bytesRead)));
      waiting += bytesRead - start;
      if (waiting > maxLineBytes)
        throw refusal(`${this.#path} has a line over 64 MiB, which no journal has: name another file`);
    }
  }

  async #lineAt(offset: number): Promise<string> {
    for (let length = 2048; ; length *= 4) {
      const { buffer, bytesRead } = await this.#file.read(Buffer.alloc(length), 0, length, offset);
      const end = buffer.subarray(0, bytesRead).indexOf(10);
      if (end >= 0) return buffer.toString("utf8", 0, end);
      if (bytesRead < length || length > maxLineBytes) return "";
    }
  }

  #rowOf(line: string): Row | undefined {
    const { key, ...fields } = asRecord(parseJson(line)?.value);
    const hasKey = typeof key === "string" && /^[0-9a-f]{32}$/.test(key) && key === keyOf(line);
    return hasKey ? this.#kind.parse(fields) : undefined;
  }
}

function keyOf(line: string): string {
  return line.slice(keyStart, keyStart + 32);
}

function refusal(problem: string, cause?: unknown): OctavoError {
  return new OctavoError("invalid_option", problem, { param: "journal", cause });
}
