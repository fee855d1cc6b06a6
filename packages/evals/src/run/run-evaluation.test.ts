import assert from "node:assert/strict";
import test from "node:test";
import { OctavoError } from "@octavo/protocol";
import { evaluatorTable } from "../evaluators/table.js";
import { parseGateConfig } from "../gate/config.js";
import { FakeJudge } from "../judges/testing/fake-judge.js";
import { LocalRunner } from "../runners/local-runner.js";
import { functionTarget } from "../targets/function-target.js";
import { evaluationVocabulary } from "./plan-evaluation.js";
import { type EvaluationPlan, runEvaluation } from "./run-evaluation.js";

const gate = parseGateConfig(
  "eval.yaml",
  `version: 1
targets: {candidate: {base_url: http://c}}
checks:
  tail: {}
  traffic-drift: {recording: none.jsonl}
  quantization: {}
`,
  evaluationVocabulary,
);

const plan: EvaluationPlan = {
  name: "a release",
  seed: 1,
  candidate: { target: functionTarget("candidate", () => "word"), url: "", model: undefined },
  baseline: undefined,
  replicas: [],
  startReplica: undefined,
  datasets: [
    {
      name: "golden",
      size: 12,
      async *cases() {
        for (let index = 0; index < 12; index += 1)
          yield {
            id: String(index),
            messages: [{ role: "user", content: `question ${index}` }],
            tools: [],
            context: undefined,
            expected: { outputs: ["word"] },
            parameters: {},
            tenant: undefined,
            cluster: undefined,
            tags: [],
            metadata: {},
          };
      },
    },
  ],
  evaluators: [],
  checks: gate.checks,
  gate,
  scoresCases: false,
  concurrency: 2,
  prices: undefined,
  maxReportedCases: 10,
  maxCheckCases: 12,
  warnings: [],
};

const options = { runner: new LocalRunner(), signal: new AbortController().signal };

test("a check that cannot be made leaves the others their results, and the gate its reason", async () => {
  const report = await runEvaluation(plan, options);
  assert.deepEqual(
    report.checks.map(({ check, summary }) => [check, summary.startsWith("Could not be made: ")]),
    [
      ["quantization", true],
      ["tail", false],
      ["traffic-drift", true],
    ],
  );
  assert.equal(report.gate?.outcome, "config");
  assert.match(report.gate?.summary ?? "", /baseline/);
});

test("one check alone that cannot be made is the run's own failure", async () => {
  const checks = gate.checks.filter(({ name }) => name === "traffic-drift");
  const judged = await runEvaluation({ ...plan, checks }, options);
  assert.deepEqual([judged.gate?.outcome, judged.checks], ["data", []]);
  await assert.rejects(
    runEvaluation({ ...plan, checks, gate: undefined }, options),
    (error) => error instanceof OctavoError && error.code === "dataset_invalid",
  );
});

test("a run whose time is over reports what it has; one that was interrupted rejects", async () => {
  const late = await runEvaluation(
    { ...plan, scoresCases: true },
    { ...options, deadline: AbortSignal.abort() },
  );
  assert.deepEqual([late.gate?.outcome, late.gate?.exitCode], ["timeout", 7]);
  await assert.rejects(
    runEvaluation({ ...plan, scoresCases: true }, { ...options, signal: AbortSignal.abort() }),
    (error) => error instanceof OctavoError && error.code === "request_cancelled",
  );
});

test("how judges came to their verdicts is in the report: by place, and by the stage that was sure", async () => {
  // prefers whatever stands first, and passes everything, sure of it
  const judge = new FakeJudge(({ labels }) =>
    labels.includes("A") ? { label: "A" } : { label: "pass", probabilities: { pass: 0.95, fail: 0.05 } },
  );
  const evaluators = evaluatorTable.create(
    [
      "pairwise_preference",
      {
        name: "cascade",
        as: "helpful",
        options: { stages: [{ evaluator: "is_helpful" }, { evaluator: "is_helpful" }], audit_share: 1 },
      },
    ],
    { judge },
  );
  const report = await runEvaluation(
    {
      ...plan,
      baseline: { target: functionTarget("baseline", () => "other"), url: "", model: undefined },
      evaluators,
      checks: [],
      gate: undefined,
      scoresCases: true,
    },
    options,
  );
  assert.deepEqual(
    report.comparisons?.map(({ evaluator, judge: by, target, numPairs }) => [
      evaluator,
      by,
      target,
      numPairs,
    ]),
    [["pairwise_preference", "fake", "candidate", 12]],
  );
  assert.equal(report.comparisons?.[0]?.disagreement?.estimate, 1);
  assert.equal(report.comparisons?.[0]?.firstPreferred?.estimate, 1);
  assert.deepEqual(
    report.cascades?.map(({ evaluator, target, stages, numAudited }) => [
      evaluator,
      target,
      stages,
      numAudited,
    ]),
    ["baseline", "candidate"].map((target) => [
      "helpful",
      target,
      [{ name: "1:is_helpful", numDecided: 12 }],
      12,
    ]),
  );
  assert.equal(report.cascades?.[0]?.agreement?.estimate, 1);
  assert.match(report.warnings.join("\n"), /in 100 % of 12 pairs the order decided which answer was better/);
  const without = await runEvaluation({ ...plan, checks: [], gate: undefined, scoresCases: true }, options);
  assert.deepEqual([without.comparisons, without.cascades], [undefined, undefined]);
});
