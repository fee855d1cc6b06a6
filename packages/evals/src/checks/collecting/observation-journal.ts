import { createHash } from "node:crypto";
import { open, type FileHandle, readFile } from "node:fs/promises";
import { OctavoError } from "@octavo/protocol";
import { z } from "zod";
import type { Observation } from "../observation.js";

const header = '{"journal":"octavo-observations","version":1}';

/** What tells a row of ours from anything else; the rest of an observation is as it was written. */
const journalRow = z.object({
  key: z.string().regex(/^[0-9a-f]{32}$/),
  observations: z.array(
    z.looseObject({
      caseId: z.string(),
      condition: z.string(),
      tags: z.array(z.string()),
      scheduledEpochMs: z.number(),
      durationMs: z.number(),
      gapsMs: z.array(z.number()),
      scores: z.record(z.string(), z.number().nullable()),
    }),
  ),
});

/** Observations of whole cases on disk, one case a line, by what was planned: a check that was cut off goes on from it. */
export class ObservationJournal implements AsyncDisposable {
  readonly #file: FileHandle;
  readonly #rows: Map<string, readonly Observation[]>;
  readonly #context: string;

  private constructor(file: FileHandle, rows: Map<string, readonly Observation[]>, context: string) {
    this.#file = file;
    this.#rows = rows;
    this.#context = context;
  }

  /**
   * Opens or begins a journal; a last line that was torn is written again.
   * @param context what decides answers beside the plan, such as the targets' URLs and models; as JSON
   * @throws OctavoError `invalid_option` where the file cannot be opened or is something else
   */
  static async open(path: string, context: unknown = null): Promise<ObservationJournal> {
    try {
      const file = await open(path, "a+");
      try {
        const rows = new Map<string, readonly Observation[]>();
        const whole = await readRows(path, rows);
        await file.truncate(whole);
        if (whole === 0) await file.appendFile(`${header}\n`);
        return new ObservationJournal(file, rows, JSON.stringify(context) ?? "");
      } catch (error) {
        await file.close();
        throw error;
      }
    } catch (cause) {
      if (cause instanceof OctavoError) throw cause;
      const { message } = OctavoError.from(cause);
      throw new OctavoError("invalid_option", `the journal ${path} cannot be opened: ${message}`, { cause });
    }
  }

  get size(): number {
    return this.#rows.size;
  }

  get(key: string): readonly Observation[] | undefined {
    return this.#rows.get(this.#rowKey(key));
  }

  /** @throws OctavoError `disk_full` where it cannot be written */
  async append(key: string, observations: readonly Observation[]): Promise<void> {
    const rowKey = this.#rowKey(key);
    this.#rows.set(rowKey, observations);
    try {
      await this.#file.appendFile(`${JSON.stringify({ key: rowKey, observations })}\n`);
    } catch (cause) {
      const { message } = OctavoError.from(cause);
      throw new OctavoError("disk_full", `the journal cannot be written: ${message}`, { cause });
    }
  }

  #rowKey(key: string): string {
    return createHash("sha256").update(`${this.#context}\n${key}`).digest("hex").slice(0, 32);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#file.close();
  }
}

/** Returns the bytes up to the end of the last whole line. */
async function readRows(path: string, rows: Map<string, readonly Observation[]>): Promise<number> {
  const text = await readFile(path, "utf8");
  const end = text.lastIndexOf("\n") + 1;
  const whole = text.slice(0, end);
  if (end === 0 && text !== "" && !header.startsWith(text)) refuse(path, 1);
  for (const [index, line] of whole.split("\n").slice(0, -1).entries()) {
    if (index === 0) {
      if (line !== header) refuse(path, 1);
      continue;
    }
    const row = journalRow.safeParse(parsed(line));
    if (!row.success) refuse(path, index + 1);
    // absent fields are those that were undefined
    else rows.set(row.data.key, row.data.observations as readonly object[] as readonly Observation[]);
  }
  return Buffer.byteLength(whole);
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line) as unknown;
  } catch {
    return undefined;
  }
}

function refuse(path: string, line: number): never {
  throw new OctavoError(
    "invalid_option",
    `${path}, line ${line}: not a journal of observations: remove the line or name another file`,
  );
}
