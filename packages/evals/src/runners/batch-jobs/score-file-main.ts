// A job of a batch runner: scores the tasks in a folder that no earlier attempt has scored.
import { open, rename } from "node:fs/promises";
import { parseArgs } from "node:util";
import { OctavoError } from "@octavo/protocol";
import type { Score } from "../../evaluators/evaluator.js";
import { loadEvaluatorTable } from "../../evaluators/load-table.js";
import { concurrently } from "../concurrently.js";
import { TaskScorer } from "../task-scorer.js";
import { runScript, workerOptions, workerSetup } from "../worker-arguments.js";
import { LocalRunner } from "../local-runner.js";
import { JobFiles, fileLines } from "./job-files.js";

async function main(): Promise<void> {
  const { values } = parseArgs({ options: { folder: { type: "string" }, ...workerOptions } });
  if (values.folder === undefined) throw new OctavoError("invalid_option", "--folder is needed");
  const { services, modules, threads, concurrency = 16 } = workerSetup(values);
  const table = await loadEvaluatorTable(modules);
  const files = new JobFiles(values.folder);
  if (await files.isFinished()) return;
  const known = await files.readScores();
  const runner = new LocalRunner({ modules, threads: threads ?? "auto" });
  const scorer = new TaskScorer({ table, services, runner });
  const output = await open(files.partialScores, "a");
  try {
    // ends a line that an earlier attempt was killed in
    if (known.size > 0 || (await output.stat()).size > 0) await output.appendFile("\n");
    const { signal } = new AbortController();
    const rows = concurrently(
      unscored(files.tasks, known),
      concurrency,
      async ({ index, line }, own) => ({ index, score: await scoreLine(scorer, line, own) }),
      signal,
    );
    for await (const row of rows) await output.appendFile(`${JSON.stringify(row)}\n`);
    await output.sync();
  } finally {
    await output.close();
    await runner.close();
  }
  await rename(files.partialScores, files.scores);
}

async function* unscored(
  path: string,
  known: ReadonlyMap<number, Score>,
): AsyncGenerator<{ readonly index: number; readonly line: string }, void, undefined> {
  let index = 0;
  for await (const line of fileLines(path)) {
    if (!known.has(index)) yield { index, line };
    index++;
  }
}

async function scoreLine(scorer: TaskScorer, line: string, signal: AbortSignal): Promise<Score> {
  try {
    return await scorer.score(JSON.parse(line), signal);
  } catch (thrown) {
    signal.throwIfAborted();
    const { code, message } = OctavoError.from(thrown);
    return { status: "failed", code, reason: message };
  }
}

await runScript(main);
