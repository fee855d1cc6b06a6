import assert from "node:assert/strict";
import { it } from "node:test";
import type { EvalCase } from "../cases/eval-case.js";
import { EvaluatorTable } from "../evaluators/registry.js";
import { evaluatorTable } from "../evaluators/table.js";
import { sampleOf } from "../evaluators/testing/sample.js";
import { calibrateEvaluator, reportCalibration } from "./calibrate-evaluator.js";
import { judgedEvaluators } from "./judged-evaluators.js";
import { FakeJudge } from "./testing/fake-judge.js";

const { signal } = new AbortController();

/** Right where the answer says so, and sure of it by how many marks it has. */
const judge = new FakeJudge(({ user }) => {
  const passes = /\bgood\b/.test(user);
  const sure = /!!/.test(user) ? 0.95 : 0.65;
  return {
    label: passes ? "pass" : "fail",
    probabilities: passes ? { pass: sure, fail: 1 - sure } : { pass: 1 - sure, fail: sure },
  };
}, "judge-1");
const [polite] = new EvaluatorTable(judgedEvaluators).create(["is_polite"], { judge });

function labelledCase(index: number, output: unknown, label?: unknown): EvalCase {
  const metadata = { output, ...(label === undefined ? {} : { label }) };
  return sampleOf({ case: { id: `case-${index}`, metadata } }).case;
}

it("an evaluator is held against labels, and corrects what it says of the other cases", async () => {
  const cases = Array.from({ length: 100 }, (_, index) => {
    const isRight = index % 2 === 0;
    const isMistaken = index % 10 === 0;
    const output = `${isRight === isMistaken ? "ill" : "good"} ${index}${index % 4 < 2 ? "!!" : ""}`;
    const labels = [
      isRight ? "pass" : "fail",
      isRight,
      isRight ? 1 : 0,
      { is_polite: isRight ? "Yes" : "no" },
    ];
    return labelledCase(index, output, index < 60 ? labels[index % 4] : undefined);
  });
  const calibration = await calibrateEvaluator(polite!, cases, { signal });
  const { report } = calibration;
  assert.deepEqual([calibration.numCases, calibration.numFailed], [100, 0]);
  assert.ok(report.status === "calibrated");
  assert.deepEqual(report.accuracy, {
    sensitivity: { successes: 24, trials: 30 },
    specificity: { successes: 30, trials: 30 },
  });
  assert.deepEqual(report.uncorrected, { passed: 16, total: 40 });
  assert.ok(Math.abs(report.corrected!.estimate! - 0.5) < 1e-12);
  const row = reportCalibration(calibration);
  assert.deepEqual([row?.judge, row?.evaluator, row?.numLabels], ["judge-1", "is_polite", 60]);
  assert.ok(Math.abs(row!.kappa!.estimate - 0.8) < 1e-12);
  assert.deepEqual(
    row?.bins.map(({ predicted }) => Math.round(predicted * 100)),
    [5, 35, 65, 95],
  );
  assert.equal(
    row?.bins.reduce((sum, { count }) => sum + count, 0),
    60,
  );
});

it("a run's own pass rate is corrected where it is given", async () => {
  const cases = Array.from({ length: 40 }, (_, index) =>
    labelledCase(
      index,
      index % 2 === 0 || index % 8 === 1 ? "good" : "ill",
      index % 2 === 0 ? "pass" : "fail",
    ),
  );
  const calibration = await calibrateEvaluator(polite!, cases, { signal });
  assert.equal(reportCalibration(calibration)?.correctedPassRate, undefined);
  // all of the right and a quarter of the wrong ones pass: 0.7 is said where 0.6 is true
  const passes = [...Array.from({ length: 70 }, () => 1), ...Array.from({ length: 30 }, () => 0), Number.NaN];
  const corrected = reportCalibration(calibration, passes)?.correctedPassRate;
  assert.ok(Math.abs(corrected!.estimate - 0.6) < 1e-12);
  assert.ok(corrected!.interval![0] < 0.6 && corrected!.interval![1] > 0.6);
});

it("how an evaluator came to its verdicts is counted: by place, and by stage", async () => {
  const loyal = new FakeJudge(({ labels }) =>
    labels.includes("A") ? { label: "A" } : { label: "pass", probabilities: { pass: 0.99, fail: 0.01 } },
  );
  const stages = [{ evaluator: "is_polite" }, { evaluator: "is_polite" }];
  const [pairwise, cascade] = evaluatorTable.create(
    ["pairwise_preference", { name: "cascade", options: { stages, audit_share: 0.5 } }],
    { judge: loyal },
  );
  const cases = Array.from({ length: 24 }, (_, index) => {
    const own = labelledCase(index, `answer ${index}`, index % 2 === 0 ? "pass" : "fail");
    return index < 20 ? { ...own, metadata: { ...own.metadata, baseline: "another" } } : own;
  });
  const compared = await calibrateEvaluator(pairwise!, cases, { signal });
  assert.equal(compared.places.numPairs, 20, "four have nothing to be compared with");
  assert.equal(compared.places.disagreement?.estimate, 1);
  assert.equal(compared.cascade.numScored, 0);
  const staged = await calibrateEvaluator(cascade!, cases, { signal });
  assert.deepEqual(staged.cascade.stages, [{ name: "1:is_polite", numDecided: 24 }]);
  assert.ok(staged.cascade.numAudited > 4 && staged.cascade.numAudited < 20);
  assert.equal(staged.cascade.agreement?.estimate, 1);
  const renamed = await calibrateEvaluator(pairwise!, cases, { signal, baselineField: "label" });
  assert.equal(renamed.places.numPairs, 24);
});

it("labels that are too few make no row", async () => {
  const cases = [labelledCase(1, "good", "pass"), labelledCase(2, "ill", "fail")];
  const calibration = await calibrateEvaluator(polite!, cases, { signal });
  assert.equal(calibration.report.status, "refused");
  assert.equal(reportCalibration(calibration), undefined);
});

it("cases without an answer, and labels that are none, are named", async () => {
  const wrong = [
    [labelledCase(3, undefined, "pass"), /case "case-3": output: expected the answer/],
    [labelledCase(4, "good", "perhaps"), /case "case-4": label: expected pass or fail/],
    [labelledCase(5, "good", { is_polite: 2 }), /case "case-5": label/],
  ] as const;
  for (const [evalCase, message] of wrong)
    await assert.rejects(calibrateEvaluator(polite!, [evalCase], { signal }), {
      code: "dataset_invalid",
      message,
    });
});
