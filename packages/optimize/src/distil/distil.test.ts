import assert from "node:assert/strict";
import test from "node:test";
import { ClassifierModel, type EvalCase, evaluatorTable, type JudgeModel, type Sample } from "@octavo/evals";
import { Random } from "@octavo/statistics";
import { certifyThreshold } from "./certify-threshold.js";
import { distilEvaluator } from "./distil-evaluator.js";
import { distilJudge, type DistilOptions, type JudgedVector } from "./distil.js";
import { plattScaling } from "./platt.js";

const width = 24;
const options: DistilOptions = {
  imitates: "is_polite by big-judge",
  embeddings: { model: "small", dimensions: width },
  inputs: ["output"],
};

/** Verdicts by a plane through the space, or by two crossing ones; a share of them at random. */
function judged(count: number, seed: number, { crossing = false, noise = 0 } = {}): readonly JudgedVector[] {
  const random = new Random(seed);
  return Array.from({ length: count }, (_, index) => {
    const vector = Array.from({ length: width }, () => random.normal());
    const [a = 0, b = 0] = vector;
    const truth = crossing ? a > 0 === b > 0 : a + b > 0.3;
    const passed = random.uniform() < noise ? random.uniform() < 0.5 : truth;
    return { caseId: `case-${index}`, vector, passed, cluster: undefined };
  });
}

test("a plane is learned, and crossing planes by a network", () => {
  for (const crossing of [false, true]) {
    const found = distilJudge(judged(3000, 1, { crossing }), options);
    if (crossing) assert.equal(found.kind, "mlp");
    assert.ok(found.agreementOfAll > 0.9, `${found.agreementOfAll}`);
    assert.ok(found.saved > 0.5, `${found.saved}`);
    assert.ok((found.classifier?.guarantee.lower_bound ?? 0) >= 0.98);
  }
});

test("what was certified holds on new cases in at least the confidence's share of runs", () => {
  let broken = 0;
  let certified = 0;
  const runs = 40;
  for (let seed = 1; seed <= runs; seed += 1) {
    const random = new Random(seed);
    // agreement falls with certainty, so that a threshold that is too low breaks the promise
    const draw = () => {
      const certainty = 0.5 + random.uniform() / 2;
      return { certainty, agrees: random.uniform() < 0.9 + 0.1 * Math.min(1, 2.2 * (certainty - 0.5)) };
    };
    const draws = (count: number) => Array.from({ length: count }, draw);
    const reference = draws(300).map(({ certainty }) => certainty);
    const found = certifyThreshold(draws(500), reference, { agreement: 0.97, confidence: 0.9 });
    if (found === undefined) continue;
    certified += 1;
    const fresh = draws(20_000).filter(({ certainty }) => certainty >= found.certainty);
    if (fresh.filter(({ agrees }) => agrees).length / fresh.length < 0.97) broken += 1;
  }
  assert.ok(certified >= runs / 2, `${certified} certified`);
  // a tenth may break it: more than 9 of 40 has a probability below 1 %
  assert.ok(broken <= 9, `${broken} of ${runs}`);
});

test("Platt scaling gives probabilities, also of logits that separate the labels", () => {
  const random = new Random(3);
  const rows = Array.from({ length: 4000 }, () => {
    const logit = 3 * random.normal();
    return { logit, label: random.uniform() < 1 / (1 + Math.exp(-(0.7 * logit - 0.4))) };
  });
  const { slope, intercept } = plattScaling(rows);
  assert.ok(Math.abs(slope - 0.7) < 0.07 && Math.abs(intercept + 0.4) < 0.12, `${slope} ${intercept}`);
  const apart = plattScaling([-2, -1, 1, 2].map((logit) => ({ logit, label: logit > 0 })));
  assert.ok(Number.isFinite(apart.slope) && apart.slope > 0);
});

test("one-sided verdicts, too few cases and embeddings of two models are refused by name", () => {
  const rows = judged(200, 4);
  const refused = (given: readonly JudgedVector[], message: RegExp): void => {
    assert.throws(() => distilJudge(given, options), { code: "dataset_invalid", message });
  };
  refused(
    rows.map((row) => ({ ...row, passed: true })),
    /passed all 200 cases: .* add cases that fail/,
  );
  refused(
    rows.map((row, index) => ({ ...row, passed: index < 4 })),
    /4 of 200 cases pass/,
  );
  refused(rows.slice(0, 20), /20 judged cases/);
  refused(
    [...rows, { ...rows[0]!, caseId: "other", vector: [1, 2] }],
    /embedding of other has 2 numbers, others have 24/,
  );
  refused([...rows, { ...rows[0]!, caseId: "odd", vector: rows[0]!.vector.map(() => Number.NaN) }], /odd/);
});

test("noise that cannot be imitated is not certified, and neither are too few cases", () => {
  const noisy = distilJudge(judged(1500, 5, { noise: 0.5 }), options);
  assert.equal(noisy.classifier, undefined);
  assert.match(noisy.reason ?? "", /do not reach 98 % agreement/);
  const few = distilJudge(judged(200, 6), options);
  assert.equal(few.classifier, undefined);
  assert.match(few.reason ?? "", /judge about \d+ cases/);
});

test("the row decides what it is sure of, leaves the rest, and refuses embeddings of another model", async () => {
  const { classifier } = distilJudge(judged(1500, 7), options);
  assert.ok(classifier !== undefined);
  const fresh = judged(300, 8);
  let dimensions = width;
  const judge: JudgeModel = {
    name: "small",
    ask: () => Promise.resolve({ label: "pass", probabilities: undefined, reason: "asked" }),
    embed: (texts) =>
      Promise.resolve(texts.map((text) => (fresh[Number(text)]?.vector ?? []).slice(0, dimensions))),
  };
  const stages = [
    { evaluator: { name: "distilled_judge", options: classifier }, certainty: 0.5 },
    { evaluator: { name: "is_polite" } },
  ];
  const [distilled, cascade] = evaluatorTable.create(
    [
      { name: "distilled_judge", options: classifier },
      { name: "cascade", options: { stages, audit_share: 0 } },
    ],
    { judge },
  );
  const model = new ClassifierModel(classifier);
  const signal = new AbortController().signal;
  let decided = 0;
  for (const [index, { vector, passed }] of fresh.entries()) {
    const score = await distilled!.evaluate(sampleOf(String(index)), { signal });
    const p = model.passProbability(vector);
    assert.equal(score.status, Math.max(p, 1 - p) >= classifier.certainty ? "scored" : "skipped");
    if (score.status !== "scored") continue;
    decided += 1;
    if (score.passed !== passed) assert.ok(Math.abs(p - 0.5) < 0.5);
  }
  assert.ok(decided > 150);
  dimensions = 12;
  const changed = await distilled!.evaluate(sampleOf("1"), { signal });
  assert.equal(changed.status, "failed");
  assert.match(
    changed.status === "failed" ? changed.reason : "",
    /embeddings of 12 dimensions, .* distilled on 24: the model has changed/,
  );
  const passedOn = await cascade!.evaluate(sampleOf("1"), { signal });
  assert.match(
    JSON.stringify(passedOn),
    /"stageIndex":1,"stageProblems":\["1:distilled_judge: .*the model has changed/,
  );
  const cut = { ...classifier, layers: [{ weights: "AAAA", bias: "AAAA" }] };
  assert.throws(
    () => evaluatorTable.create([{ name: "distilled_judge", options: cut }], { judge }),
    /whole 32-bit floats/,
  );
});

test("a judge that compares is imitated by how far its inputs are apart, which the answer alone does not tell", async () => {
  const embed: JudgeModel = {
    name: "small",
    ask: () => Promise.resolve({ label: "pass", probabilities: undefined, reason: undefined }),
    // a text's numbers say nothing about whether it is right
    embed: (texts) =>
      Promise.resolve(
        texts.map((text) => {
          const random = new Random(Number(text) + 1);
          return Array.from({ length: 12 }, () => random.normal());
        }),
      ),
  };
  const random = new Random(3);
  const sampleAt = (id: string): Sample => {
    const expected = random.integer(0, 100_000);
    const output = String(random.uniform() < 0.5 ? expected : random.integer(0, 100_000));
    const { case: evalCase, answer } = sampleOf(output);
    return {
      case: { ...evalCase, id, expected: { outputs: [String(expected)] }, metadata: { output } },
      answer,
    };
  };
  const signal = new AbortController().signal;
  const [evaluator] = evaluatorTable.create(["exact_match"]);
  const cases = Array.from({ length: 900 }, (_, index) => sampleAt(String(index)).case);
  const distilled = (inputs: DistilOptions["inputs"]) =>
    distilEvaluator({
      spec: { name: "exact_match" },
      evaluator: evaluator!,
      cases,
      judge: embed,
      embeddings: { model: "small" },
      inputs,
      signal,
    });
  assert.equal((await distilled(["output"])).file, undefined);
  const { file, saved } = await distilled(["output", "expectedOutput"]);
  assert.ok(saved > 0.9, `${saved}`);
  const [cascade] = evaluatorTable.create([{ name: "cascade", options: file?.["options"] }], {
    judge: embed,
  });
  for (let index = 0; index < 40; index += 1) {
    const sample = sampleAt(`fresh-${index}`);
    const [score, wanted] = [
      await cascade!.evaluate(sample, { signal }),
      await evaluator!.evaluate(sample, { signal }),
    ];
    assert.ok(score.status === "scored" && wanted.status === "scored");
    assert.equal(score.passed, wanted.passed);
  }
});

function sampleOf(text: string): Sample {
  const evalCase: EvalCase = {
    id: text,
    messages: [{ role: "user", content: "?" }],
    tools: [],
    context: undefined,
    expected: {},
    parameters: {},
    tenant: undefined,
    cluster: undefined,
    tags: [],
    metadata: {},
  };
  const usage = { promptTokens: undefined, completionTokens: undefined, cachedTokens: undefined };
  return {
    case: evalCase,
    answer: {
      caseId: text,
      target: "t",
      model: undefined,
      text,
      reasoning: undefined,
      toolCalls: [],
      finishReason: "stop",
      usage,
      timing: { scheduledEpochMs: 0, sentEpochMs: 0, durationMs: 1, pieceMs: [] },
      serving: undefined,
      headers: {},
      failure: undefined,
    },
  };
}
