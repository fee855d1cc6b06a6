import assert from "node:assert/strict";
import test from "node:test";
import type { Evaluator } from "../../evaluators/evaluator.js";
import { EvaluatorTable } from "../../evaluators/registry.js";
import { loadEvaluatorTable } from "../../evaluators/load-table.js";
import { evaluatorTable } from "../../evaluators/table.js";
import { sampleOf } from "../../evaluators/testing/sample.js";
import type { ScoredCase } from "../runner.js";
import { conformanceModule, runnerConformance } from "../testing/conformance.js";
import { evaluators as hostileRows, hostileModule } from "../testing/hostile-evaluators.js";
import { LocalRunner } from "../local-runner.js";

runnerConformance(
  "LocalRunner",
  () => new LocalRunner({ threads: 2, modules: [conformanceModule] }),
  // of two threads, two batches of 16 each and one that is being collected
  { samplesInFlight: 2 * 2 * 16 + 17, manySamples: 5000 },
);

async function collect(runner: LocalRunner, texts: readonly string[], evaluators: readonly Evaluator[]) {
  const samples = texts.map((output, index) => sampleOf({ output, case: { id: `${index}` } }));
  const rows: ScoredCase[] = [];
  const { signal } = new AbortController();
  for await (const row of runner.run(samples, evaluators, { signal })) rows.push(row);
  return rows.toSorted((a, b) => Number(a.caseId) - Number(b.caseId) || (a.evaluator < b.evaluator ? -1 : 1));
}

test("a sample that kills its thread or never ends costs its own score and no other", async () => {
  const runner = new LocalRunner({ threads: 1, modules: [hostileModule], timeoutMs: 1500 });
  try {
    const evaluators = new EvaluatorTable([...evaluatorTable.entries, ...hostileRows]).create([
      "test_hostile",
      "one_line",
    ]);
    const texts = ["fine", "exit", "spin", "fine", "fine"];
    const rows = await collect(runner, texts, evaluators);
    assert.equal(rows.length, 10);
    const failures = rows.filter(({ score }) => score.status === "failed");
    assert.deepEqual(
      failures.map(({ caseId, evaluator, score }) => [
        caseId,
        evaluator,
        score.status === "failed" && score.code,
      ]),
      [
        ["1", "test_hostile", "runner_unavailable"],
        ["2", "test_hostile", "deadline_exceeded"],
      ],
    );
  } finally {
    await runner.close();
  }
});

test("evaluators without a spec run in this process beside the others", async () => {
  const own: Evaluator = {
    name: "own",
    description: "Its own.",
    inputs: ["output"],
    output: "score",
    needsJudge: false,
    evaluate: ({ answer }) => ({ status: "scored", value: answer.text.length / 10, passed: true }),
  };
  const runner = new LocalRunner({ threads: 1 });
  try {
    const rows = await collect(runner, ["a", "bb\n\nb"], [own, ...evaluatorTable.create(["one_line"])]);
    assert.deepEqual(
      rows.map(({ evaluator, score }) => [evaluator, score.status === "scored" && score.value]),
      [
        ["one_line", 1],
        ["own", 0.1],
        ["one_line", 0],
        ["own", 0.5],
      ],
    );
  } finally {
    await runner.close();
  }
});

test("specs that the threads do not know reject the run", async () => {
  const runner = new LocalRunner({ threads: 1 });
  const [unknown] = new EvaluatorTable(hostileRows).create(["test_hostile"]);
  await assert.rejects(collect(runner, ["a"], [unknown!]), /no evaluator "test_hostile"/);
  await runner.close();
});

test("modules that export no evaluators are refused by name", async () => {
  const table = await loadEvaluatorTable([conformanceModule]);
  assert.equal(table.get("test_length")?.output, "score");
  await assert.rejects(loadEvaluatorTable(["node:path"]), /node:path must export `evaluators`/);
  await assert.rejects(loadEvaluatorTable(["file:///nowhere.mjs"]), /file:\/\/\/nowhere.mjs must export/);
  await assert.rejects(
    loadEvaluatorTable([conformanceModule, conformanceModule]),
    /two evaluators are called/,
  );
});
