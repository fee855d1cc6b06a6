import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Score } from "../evaluators/evaluator.js";
import { EvaluatorTable } from "../evaluators/registry.js";
import { evaluatorTable } from "../evaluators/table.js";
import { sampleOf, scoreOf } from "../evaluators/testing/sample.js";
import { calibrate } from "./calibration.js";
import { cascadeReport } from "./cascade.js";
import type { JudgeQuestion } from "./judge.js";
import { comparePair, pairwiseEvaluator, positionBias } from "./pairwise.js";
import { FakeJudge } from "./testing/fake-judge.js";

const { signal } = new AbortController();

/** Which of the two answers is shown first. */
function firstShown({ user }: JudgeQuestion): string {
  return /=== answer A \w+ ===\n(.*)/.exec(user)?.[1] ?? "";
}

const pair = { input: "Why?", one: "good", other: "bad" };

describe("a comparison in both orders", () => {
  it("is won where both orders agree", async () => {
    const judge = new FakeJudge((question) => ({ label: firstShown(question) === "good" ? "A" : "B" }));
    assert.equal((await comparePair(judge, pair, "Better?", { signal })).winner, "one");
    const turned = { ...pair, one: "bad", other: "good" };
    assert.equal((await comparePair(judge, turned, "Better?", { signal })).winner, "other");
  });

  it("is a tie where the place decided, and the place's share is reported", async () => {
    const loyal = new FakeJudge(() => ({ label: "A" }));
    const comparison = await comparePair(loyal, pair, "Better?", { signal });
    assert.equal(comparison.winner, "tie");
    assert.deepEqual(comparison.preferences, ["first", "first"]);
    const fair = new FakeJudge((question) => ({ label: firstShown(question) === "good" ? "A" : "B" }));
    const sound = await comparePair(fair, pair, "Better?", { signal });
    const bias = positionBias([comparison, sound, sound, sound]);
    assert.equal(bias.numPairs, 4);
    assert.equal(bias.disagreement?.estimate, 0.25);
    assert.equal(bias.firstPreferred?.estimate, 1);
    assert.equal(positionBias([]).disagreement, undefined);
  });

  it("scores an answer against the baseline's", async () => {
    const judge = new FakeJudge((question) => ({ label: firstShown(question) === "worse" ? "B" : "A" }));
    const [evaluator] = new EvaluatorTable([pairwiseEvaluator]).create(["pairwise_preference"], { judge });
    const against = (output: string, baseline: string) =>
      scoreOf(evaluator!, { ...sampleOf({ output }), baseline: sampleOf({ output: baseline }).answer });
    const scores = [
      await against("better", "worse"),
      await against("worse", "better"),
      await against("same", "same"),
    ];
    assert.deepEqual(
      scores.map((score) =>
        score.status === "scored" ? [score.label, score.value, score.passed] : score.status,
      ),
      [
        ["better", 1, true],
        ["worse", 0, false],
        ["tie", 0.5, true],
      ],
    );
    assert.equal(judge.questions.length, 4, "equal answers are not asked about");
    assert.equal(positionBias(scores).numPairs, 2);
  });
});

const verdict = (passed: boolean): Score => ({ status: "scored", value: Number(passed), passed });
const failure: Score = { status: "failed", code: "judge_failed", reason: "down" };

function labelled(counts: Readonly<Record<"tp" | "fn" | "fp" | "tn", number>>) {
  const rows = (count: number, human: boolean, passed: boolean) =>
    Array.from({ length: count }, () => ({ human, judged: verdict(passed) }));
  return [
    ...rows(counts.tp, true, true),
    ...rows(counts.fn, true, false),
    ...rows(counts.fp, false, true),
    ...rows(counts.tn, false, false),
  ];
}

describe("a judge's calibration", () => {
  it("gives agreement beyond chance and the rate that people would have given", () => {
    const judged = [
      ...Array.from({ length: 70 }, () => verdict(true)),
      ...Array.from({ length: 30 }, () => verdict(false)),
    ];
    const report = calibrate(labelled({ tp: 36, fn: 4, fp: 8, tn: 32 }), [...judged, failure]);
    assert.ok(report.status === "calibrated");
    // observed 0.85, by chance 0.5
    assert.ok(Math.abs(report.kappa.kappa! - 0.7) < 1e-12);
    assert.ok(Math.abs(report.balancedAccuracy.estimate - 0.85) < 1e-12);
    // (0.7 + 0.8 - 1) / (0.9 + 0.8 - 1)
    assert.ok(Math.abs(report.corrected!.estimate! - 0.5 / 0.7) < 1e-12);
    assert.deepEqual(report.uncorrected, { passed: 70, total: 100 });
    assert.ok(report.corrected!.interval![0] < 0.6 && report.corrected!.interval![1] > 0.8);
    assert.ok(report.predictionPowered!.interval !== undefined);
    assert.deepEqual(report.warnings, []);
  });

  it("refuses labels that are too few or all the same, and says which to add", () => {
    const refusals = [
      [labelled({ tp: 0, fn: 0, fp: 0, tn: 0 }), /no case has both/],
      [labelled({ tp: 40, fn: 1, fp: 0, tn: 0 }), /all 41 labels say pass.*label cases that fail/],
      [labelled({ tp: 40, fn: 1, fp: 2, tn: 1 }), /3 of 44 labels say fail.*label 7 more/],
      [[{ human: true, judged: failure }], /no case has both/],
    ] as const;
    for (const [labels, reason] of refusals) {
      const report = calibrate(labels);
      assert.ok(report.status === "refused");
      assert.match(report.reason, reason);
    }
  });

  it("warns of a judge that tells nothing apart, or often fails", () => {
    const indifferent = calibrate(labelled({ tp: 20, fn: 0, fp: 20, tn: 0 }), [verdict(true), verdict(true)]);
    assert.ok(indifferent.status === "calibrated");
    assert.equal(indifferent.corrected?.estimate, undefined);
    assert.equal(indifferent.warnings.length, 2);
    assert.match(indifferent.warnings.join(" "), /no better than chance/);
    const failing = calibrate([
      ...labelled({ tp: 20, fn: 0, fp: 0, tn: 20 }),
      ...Array.from({ length: 5 }, () => ({ human: true, judged: failure })),
    ]);
    assert.ok(failing.status === "calibrated");
    assert.match(failing.warnings.join(" "), /failed on 5 of 45/);
  });
});

describe("a cascade", () => {
  const stages = [
    { evaluator: { name: "contains", options: { values: ["I cannot"] }, not: true }, decides: "fail" },
    { evaluator: { name: "is_helpful", options: { model: "small", with_reason: false } }, certainty: 0.9 },
    { evaluator: "is_helpful" },
  ];

  function judges() {
    const asked = { small: 0, large: 0 };
    const answer = (model: "small" | "large") => (question: JudgeQuestion) => {
      asked[model] += 1;
      const isClear = question.user.includes("clear");
      const isBad = question.user.includes("bad");
      const isMistaken = model === "small" && question.user.includes("tricky");
      const passes = isBad === isMistaken;
      const sure = isClear ? 0.95 : 0.6;
      const probabilities = passes ? { pass: sure, fail: 1 - sure } : { pass: 1 - sure, fail: sure };
      return { label: passes ? "pass" : "fail", probabilities };
    };
    const large = new FakeJudge(answer("large"), "large");
    const judge = {
      name: "large",
      ask: large.ask.bind(large),
      withModel: () => new FakeJudge(answer("small"), "small"),
    };
    return { asked, judge };
  }

  async function run(outputs: readonly string[], auditShare: number) {
    const { asked, judge } = judges();
    const spec = { name: "cascade", options: { stages, audit_share: auditShare } };
    const [evaluator] = evaluatorTable.create([spec], { judge });
    const scores: Score[] = [];
    for (const [index, output] of outputs.entries())
      scores.push(await scoreOf(evaluator!, sampleOf({ output, case: { id: `case-${index}` } })));
    return { scores, asked };
  }

  it("asks the next one only where it is not sure", async () => {
    const { scores, asked } = await run(["I cannot do that", "clear", "clear bad", "hm bad", "hm"], 0);
    assert.deepEqual(
      scores.map((score) =>
        score.status === "scored" ? [score.passed, score.details?.["stageIndex"]] : score.status,
      ),
      [
        [false, 0],
        [true, 1],
        [false, 1],
        [false, 2],
        [true, 2],
      ],
    );
    assert.deepEqual(asked, { small: 4, large: 2 });
  });

  it("asks the last one about a share of the others, and reports how often it agrees", async () => {
    const outputs = Array.from({ length: 200 }, (_, index) => (index % 10 === 0 ? "clear tricky" : "clear"));
    const { scores, asked } = await run(outputs, 0.5);
    const report = cascadeReport(scores);
    assert.equal(report.numScored, 200);
    assert.deepEqual(
      report.stages.map(({ numDecided }) => numDecided),
      [0, 200],
    );
    assert.ok(report.numAudited > 70 && report.numAudited < 130, `${report.numAudited} audited`);
    assert.equal(asked.large, report.numAudited);
    const [low, high] = report.agreement!.interval;
    assert.ok(low < 0.9 && high > 0.9, `${low} to ${high}`);
    assert.deepEqual(cascadeReport(scores), report);
    assert.equal(cascadeReport([]).agreement, undefined);
  });

  it("goes on past stages that fail, and fails with the last", async () => {
    const { judge } = judges();
    const broken = new FakeJudge(() => {
      throw new Error("down");
    });
    const services = { judge: { ...judge, withModel: () => broken } };
    const [evaluator] = evaluatorTable.create([{ name: "cascade", options: { stages } }], services);
    const score = await scoreOf(evaluator!, sampleOf({ output: "clear" }));
    assert.ok(score.status === "scored" && score.details?.["stageIndex"] === 2);
    const [down] = evaluatorTable.create([{ name: "cascade", options: { stages } }], { judge: broken });
    assert.equal((await scoreOf(down!, sampleOf({ output: "clear" }))).status, "failed");
    assert.throws(() =>
      evaluatorTable.create([{ name: "cascade", options: { stages: stages.slice(0, 1) } }], { judge }),
    );
    assert.throws(() =>
      evaluatorTable.create([{ name: "cascade", options: { stages: ["nope", "x"] } }], { judge }),
    );
  });
});
