import { open, type FileHandle } from "node:fs/promises";
import { OctavoError } from "@octavo/protocol";
import { z } from "zod";
import type { Evaluator, Sample, Score } from "../evaluators/evaluator.js";
import { ContentKeys } from "./content-key.js";
import { KeyIndex } from "./key-index.js";
import type { ScoredCase } from "./runner.js";

/** First line of every journal: what it is, so that no other file is ever appended to. */
const header = '{"journal":"octavo-scores","version":1}\n';
/** Longer lines are none of ours. */
const maxLineBytes = 4 << 20;
/** Rows wait in memory for the disk up to this. */
const maxPendingBytes = 1 << 20;

const journalRow = z.object({
  key: z.string().regex(/^[0-9a-f]{32}$/),
  caseId: z.string(),
  evaluator: z.string(),
  score: z.union([
    z.object({
      status: z.literal("scored"),
      value: z.number(),
      passed: z.boolean(),
      label: z.string().optional(),
      reason: z.string().optional(),
      details: z.record(z.string(), z.unknown()).optional(),
    }),
    z.object({ status: z.literal("skipped"), reason: z.string() }),
  ]),
});

/**
 * Scores on disk, one JSON object a line, by the content they were made of. A run that was cut off goes on from it: a line
 * that was torn is cut away. Failed scores are not kept, so that resuming tries them again.
 */
export class ScoreJournal {
  readonly #file: FileHandle;
  readonly #path: string;
  readonly #keys = new ContentKeys();
  readonly #index = new KeyIndex();
  /** Bytes on disk; rows behind it are in `#pending`. */
  #written: number;
  #pending: string[] = [];
  #pendingBytes = 0;
  readonly #unwritten = new Map<string, Score>();
  #writing: Promise<void> | undefined;
  #failure: OctavoError | undefined;

  private constructor(file: FileHandle, path: string) {
    this.#file = file;
    this.#path = path;
    this.#written = 0;
  }

  /**
   * Opens or begins a journal.
   * @throws OctavoError `invalid_option` where the file cannot be opened or is something else
   */
  static async open(path: string): Promise<ScoreJournal> {
    let file: FileHandle;
    try {
      file = await open(path, "a+");
    } catch (cause) {
      const { message } = OctavoError.from(cause);
      throw new OctavoError("invalid_option", `the journal ${path} cannot be opened: ${message}`, { cause });
    }
    const journal = new ScoreJournal(file, path);
    try {
      await journal.#load();
    } catch (error) {
      await file.close();
      throw error;
    }
    return journal;
  }

  /** Rows that need not be scored again. */
  get size(): number {
    return this.#index.size;
  }

  keyOf(sample: Sample, evaluator: Evaluator): string {
    return this.#keys.of(sample, evaluator);
  }

  async read(key: string): Promise<Score | undefined> {
    const unwritten = this.#unwritten.get(key);
    if (unwritten !== undefined) return unwritten;
    const offset = this.#index.get(key);
    if (offset === undefined) return undefined;
    const line = await this.#lineAt(offset);
    // another process that wrote to the same file has moved the rows: then it is scored again
    return keyOfLine(line) === key ? scoreOf(line) : undefined;
  }

  /**
   * Resolves when there is room for more; `flush` waits for the disk.
   * @throws OctavoError `disk_full` once a write has failed
   */
  async append(key: string, row: ScoredCase): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure;
    if (row.score.status === "failed") return;
    const line = `${JSON.stringify({ key, ...row })}\n`;
    if (line.length > maxLineBytes / 3) return;
    this.#pending.push(line);
    this.#pendingBytes += line.length;
    this.#unwritten.set(key, row.score);
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

  /** One write at a time; what comes meanwhile goes with the next. Does not reject: `#failure` is thrown by who comes next. */
  async #write(): Promise<void> {
    try {
      while (this.#pending.length > 0) {
        const lines = this.#pending;
        this.#pending = [];
        this.#pendingBytes = 0;
        const bytes = Buffer.from(lines.join(""));
        await this.#file.appendFile(bytes);
        for (const line of lines) {
          const key = keyOfLine(line);
          this.#index.set(key, this.#written);
          this.#unwritten.delete(key);
          this.#written += Buffer.byteLength(line);
        }
      }
    } catch (cause) {
      const { message } = OctavoError.from(cause);
      this.#failure = new OctavoError(
        "disk_full",
        `the journal ${this.#path} cannot be written: ${message}`,
        { cause },
      );
    } finally {
      this.#writing = undefined;
    }
  }

  async #load(): Promise<void> {
    const { size } = await this.#file.stat();
    if (size === 0) {
      await this.#file.appendFile(header);
      this.#written = header.length;
      return;
    }
    let lineNumber = 0;
    let lineStart = 0;
    for await (const line of this.#lines(size)) {
      lineNumber++;
      if (lineNumber === 1) {
        if (line.toString() !== header) {
          throw new OctavoError(
            "invalid_option",
            `${this.#path} is not a journal of scores: name another file`,
          );
        }
      } else {
        const text = line.toString();
        if (scoreOf(text) === undefined) {
          throw new OctavoError(
            "invalid_option",
            `${this.#path}, line ${lineNumber}: not a row of a journal: remove the line or the file`,
          );
        }
        this.#index.set(keyOfLine(text), lineStart);
      }
      lineStart += line.length;
    }
    if (lineNumber === 0) {
      throw new OctavoError("invalid_option", `${this.#path} is not a journal of scores: name another file`);
    }
    if (lineStart < size) await this.#file.truncate(lineStart);
    this.#written = lineStart;
  }

  /** Whole lines with their ends, streamed; a last one without an end is left out. */
  async *#lines(size: number): AsyncGenerator<Buffer, void, undefined> {
    const chunk = Buffer.alloc(1 << 16);
    let rest = Buffer.alloc(0);
    for (let at = 0; at < size;) {
      const { bytesRead } = await this.#file.read(chunk, 0, chunk.length, at);
      if (bytesRead === 0) break;
      at += bytesRead;
      rest = Buffer.concat([rest, chunk.subarray(0, bytesRead)]);
      let start = 0;
      for (let end = rest.indexOf(10); end >= 0; end = rest.indexOf(10, start)) {
        yield rest.subarray(start, end + 1);
        start = end + 1;
      }
      rest = Buffer.from(rest.subarray(start));
      if (rest.length > maxLineBytes) {
        throw new OctavoError(
          "invalid_option",
          `${this.#path} has a line over 4 MiB, which no journal of scores has: name another file`,
        );
      }
    }
  }

  async #lineAt(offset: number): Promise<string> {
    let bytes = Buffer.alloc(2048);
    for (;;) {
      const { bytesRead } = await this.#file.read(bytes, 0, bytes.length, offset);
      const end = bytes.subarray(0, bytesRead).indexOf(10);
      if (end >= 0) return bytes.subarray(0, end).toString();
      if (bytesRead < bytes.length || bytes.length > maxLineBytes) return "";
      bytes = Buffer.alloc(bytes.length * 4);
    }
  }
}

function keyOfLine(line: string): string {
  const start = '{"key":"'.length;
  return line.slice(start, start + 32);
}

function scoreOf(line: string): Score | undefined {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    return undefined;
  }
  const parsed = journalRow.safeParse(value);
  if (!parsed.success || !line.startsWith(`{"key":"${parsed.data.key}"`)) return undefined;
  const { score } = parsed.data;
  if (score.status === "skipped") return score;
  const { label, reason, details, ...rest } = score;
  return {
    ...rest,
    ...(label === undefined ? {} : { label }),
    ...(reason === undefined ? {} : { reason }),
    ...(details === undefined ? {} : { details }),
  };
}
