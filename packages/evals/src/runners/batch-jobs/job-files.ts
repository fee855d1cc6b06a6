import { createReadStream } from "node:fs";
import { rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { makeFolder } from "@octavo/protocol/make-folder";
import { OctavoError } from "@octavo/protocol";
import type { Score } from "../../evaluators/evaluator.js";
import { isScore, type ScoringTask } from "../scoring-task.js";

/**
 * The folder through which a run and one of its jobs talk: `tasks.ndjson` has a task a line; the job appends a line
 * `{"index", "score"}` for each to `scores.ndjson.partial`, which becomes `scores.ndjson` when none is missing. A job that
 * is begun again goes on from what is there.
 */
export class JobFiles {
  readonly folder: string;
  readonly tasks: string;
  readonly scores: string;
  readonly partialScores: string;

  constructor(folder: string) {
    this.folder = folder;
    this.tasks = join(folder, "tasks.ndjson");
    this.scores = join(folder, "scores.ndjson");
    this.partialScores = `${this.scores}.partial`;
  }

  /** Written atomically. */
  async writeTasks(tasks: readonly ScoringTask[]): Promise<void> {
    makeFolder(this.folder);
    const draft = `${this.tasks}.${process.pid}`;
    await writeFile(draft, tasks.map((task) => `${JSON.stringify(task)}\n`).join(""));
    await rename(draft, this.tasks);
  }

  async isFinished(): Promise<boolean> {
    try {
      return (await stat(this.scores)).isFile();
    } catch {
      return false;
    }
  }

  /** Scores by the index of their task, from the file that there is; lines that are torn or none of ours are passed over. */
  async readScores(): Promise<ReadonlyMap<number, Score>> {
    const path = (await this.isFinished()) ? this.scores : this.partialScores;
    const scores = new Map<number, Score>();
    for await (const line of fileLines(path)) {
      const row = parseRow(line);
      if (row !== undefined && !scores.has(row.index)) scores.set(row.index, row.score);
    }
    return scores;
  }

  async remove(): Promise<void> {
    await rm(this.folder, { recursive: true, force: true });
  }
}

/** The lines of a file; none of one that is not there. */
export async function* fileLines(path: string): AsyncGenerator<string, void, undefined> {
  const stream = createReadStream(path, "utf8");
  try {
    yield* createInterface({ input: stream, crlfDelay: Infinity });
  } catch (cause) {
    if (cause instanceof Error && "code" in cause && cause.code === "ENOENT") return;
    const { message } = OctavoError.from(cause);
    throw new OctavoError("runner_unavailable", `${path} cannot be read: ${message}`, { cause });
  } finally {
    stream.destroy();
  }
}

function parseRow(line: string): { readonly index: number; readonly score: Score } | undefined {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    return undefined;
  }
  const { index, score } = (value ?? {}) as { readonly index?: unknown; readonly score?: unknown };
  return typeof index === "number" && isScore(score) ? { index, score: score as Score } : undefined;
}
