import assert from "node:assert/strict";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { after, before } from "node:test";
import type { AnsweredToolCall } from "../../answers/answer.js";
import type { EvalCase } from "../../cases/eval-case.js";
import { evaluatorTable } from "../../evaluators/table.js";
import { sampleOf, scoreOf } from "../../evaluators/testing/sample.js";
import { collected } from "../testing/sources.js";
import { bfclDataset } from "./bfcl.js";

let folder = "";
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "octavo-bfcl-"));
});
after(() => rm(folder, { recursive: true, force: true }));

/** A case of the leaderboard with calls that were made, and whether its own checker takes them. */
interface Judged {
  readonly id: string;
  readonly function: readonly unknown[];
  readonly ground_truth: readonly unknown[];
  readonly answers: readonly (readonly [calls: readonly (readonly [string, object])[], valid: boolean])[];
}

test("verdicts on calls are those of the leaderboard's checker, source text of Java and JavaScript included", async () => {
  const url = new URL("../../../fixtures/bfcl-verdicts.json", import.meta.url);
  const judged = JSON.parse(await readFile(url, "utf8")) as readonly Judged[];
  const path = join(folder, "BFCL_v4_made_up.json");
  const question = [[{ role: "user", content: "Do it." }]];
  await writeFile(
    path,
    judged.map((record) => JSON.stringify({ ...record, answers: undefined, question })).join("\n"),
  );
  const cases = new Map((await collected(bfclDataset(path))).map((evalCase) => [evalCase.id, evalCase]));
  const [evaluator] = evaluatorTable.create(["evaluate_function_calling"]);
  let numCompared = 0;
  const differing: string[] = [];
  for (const { id, answers } of judged)
    for (const [calls, valid] of answers) {
      const toolCalls = calls.map(([name, given], index): AnsweredToolCall => ({
        id: `call-${index}`,
        name: name.replaceAll(".", "_"),
        arguments: JSON.stringify(given),
      }));
      const score = await scoreOf(evaluator!, sampleOf({ output: "", case: cases.get(id)!, toolCalls }));
      numCompared += 1;
      if (score.status !== "scored" || score.passed !== valid)
        differing.push(`${id}, ${valid}: ${JSON.stringify(calls)}: ${JSON.stringify(score)}`);
    }
  assert.ok(numCompared > 500, `${numCompared} were compared`);
  assert.deepEqual(differing, []);
});

const document = (name: string, parameter: string): string =>
  JSON.stringify({
    name,
    description: name,
    parameters: { type: "dict", properties: { [parameter]: { type: "string" } }, required: [parameter] },
  });

const multiTurn = {
  id: "multi_turn_miss_func_0",
  question: [
    [{ role: "user", content: "Go to the attic." }],
    [{ role: "user", content: "Sort the boxes." }],
    [],
    [{ role: "user", content: "And come back." }],
  ],
  involved_classes: ["GorillaFileSystem"],
  missed_function: { "2": ["sort"] },
};
const truth = [["cd(folder='attic')"], [], ["sort('boxes')"], ["cd(folder='..')"]];

async function writeTurns(name: string, results: unknown): Promise<string> {
  const at = join(folder, name);
  for (const own of ["possible_answer", "multi_turn_func_doc", "gold_results"])
    await mkdir(join(at, own), { recursive: true });
  const path = join(at, "BFCL_v4_multi_turn_miss_func.json");
  await writeFile(path, JSON.stringify(multiTurn));
  const base = "BFCL_v4_multi_turn_miss_func.json";
  await writeFile(
    join(at, "possible_answer", base),
    JSON.stringify({ id: multiTurn.id, ground_truth: truth }),
  );
  await writeFile(
    join(at, "multi_turn_func_doc", "gorilla_file_system.json"),
    `${document("cd", "folder")}\n${document("sort", "file_name")}`,
  );
  if (results !== undefined)
    await writeFile(join(at, "gold_results", base), JSON.stringify({ id: multiTurn.id, results }));
  return path;
}

test("later turns are cases where it is known what the calls before them gave", async () => {
  const dataset = bfclDataset(await writeTurns("whole", [["in attic"], [], ["sorted"], ["back"]]));
  const turns: readonly EvalCase[] = await collected(dataset);
  assert.deepEqual(dataset.skipped?.(), {});
  assert.deepEqual(
    turns.map(({ id, cluster, tools, expected }) => [
      id,
      cluster,
      tools.map((tool) => tool.function.name),
      expected.toolCalls?.map(({ name, arguments: given }) => [name, given]),
    ]),
    [
      ["multi_turn_miss_func_0", multiTurn.id, ["cd"], [["cd", { folder: ["attic"] }]]],
      ["multi_turn_miss_func_0#turn-2", multiTurn.id, ["cd"], []],
      ["multi_turn_miss_func_0#turn-3", multiTurn.id, ["cd", "sort"], [["sort", { file_name: ["boxes"] }]]],
      ["multi_turn_miss_func_0#turn-4", multiTurn.id, ["cd", "sort"], [["cd", { folder: [".."] }]]],
    ],
  );
  assert.deepEqual(
    turns[3]?.messages.map(({ role, content, tool_calls: calls }) => calls?.[0]?.function ?? [role, content]),
    [
      ["user", "Go to the attic."],
      { name: "cd", arguments: '{"folder":"attic"}' },
      ["tool", "in attic"],
      ["user", "Sort the boxes."],
      ["assistant", "I cannot do that with what I have: a function or a detail is missing."],
      ["user", "There are more functions to choose from now. Can you do it with them?"],
      { name: "sort", arguments: '{"file_name":"boxes"}' },
      ["tool", "sorted"],
      ["user", "And come back."],
    ],
  );
  const without = bfclDataset(await writeTurns("without", undefined));
  assert.equal((await collected(without)).length, 1);
  assert.deepEqual(Object.values(without.skipped?.() ?? {}), [3]);
  await assert.rejects(collected(bfclDataset(await writeTurns("broken", [["in attic"], []]))), {
    code: "dataset_invalid",
    message: /gold_results.*must have 1 texts for turn 3/,
  });
});

test("files without a case that one request can answer are refused with the reason", async () => {
  for (const [name, reason] of [
    ["memory", /memory tool/],
    ["web_search", /open web/],
    ["format_sensitivity", /no cases of its own/],
  ] as const) {
    const path = join(folder, `BFCL_v4_${name}.json`);
    await writeFile(path, "{}");
    await assert.rejects(collected(bfclDataset(path)), { code: "dataset_invalid", message: reason });
  }
});
