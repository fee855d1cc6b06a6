import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { parseGateConfig } from "../gate/config.js";
import { evaluationVocabulary, planEvaluation } from "./plan-evaluation.js";

async function warningsOf(judge: string, evaluators: string): Promise<readonly string[]> {
  const config = parseGateConfig(
    "eval.yaml",
    `version: 1
targets:
  candidate: {base_url: "http://127.0.0.1:1", model: small}
  baseline: {base_url: "http://127.0.0.1:1", model: large}
judge: {base_url: "http://127.0.0.1:1", model: ${judge}}
evaluators: ${evaluators}
checks: {jitter: {}}`,
    evaluationVocabulary,
  );
  const surroundings = { folder: ".", environment: {}, signal: new AbortController().signal };
  return (await planEvaluation(config, surroundings)).warnings;
}

test("a model that judges its own answers is warned of, however it is named", async () => {
  assert.deepEqual(await warningsOf("other", "[groundedness]"), []);
  assert.match((await warningsOf("small", "[groundedness]")).join(), /small judges its own answers/);
  const own = await warningsOf(
    "other",
    "[groundedness, {name: groundedness, as: again, options: {model: large}}]",
  );
  assert.match(own.join(), /^large judges its own answers/);
});

test("a dataset's columns are those that the configuration names, and mistakes in them have a place", async () => {
  const folder = await mkdtemp(join(tmpdir(), "octavo-plan-"));
  const plan = (dataset: string) =>
    planEvaluation(
      parseGateConfig(
        "eval.yaml",
        `version: 1
targets: {candidate: {base_url: "http://127.0.0.1:1", model: small}}
datasets:
  table: ${dataset}
checks: {jitter: {}}`,
        evaluationVocabulary,
      ),
      { folder, environment: {}, signal: new AbortController().signal },
    );
  try {
    await writeFile(join(folder, "table.csv"), "Question|Right answer\nWhy?|So\n");
    const columns = 'columns: {input: Question, expected: "Right answer"}';
    const { datasets } = await plan(`{path: table.csv, delimiter: "|", ${columns}}`);
    for await (const { messages, expected } of datasets[0]!.cases()) {
      assert.equal(messages[0]?.content, "Why?");
      assert.deepEqual(expected.outputs, ["So"]);
    }
    await assert.rejects(
      plan("{path: table.csv, columns: {inptu: Question}}"),
      /eval\.yaml:4:10: datasets\.table: columns: a case has no field "inptu"/,
    );
    await assert.rejects(
      plan("{path: table.csv, answers: golds.json}"),
      /datasets\.table: answers: .* is read as csv, which has none; only bfcl may have it/,
    );
  } finally {
    await rm(folder, { recursive: true });
  }
});
