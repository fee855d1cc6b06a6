import assert from "node:assert/strict";
import test from "node:test";
import { OctavoError } from "@octavo/protocol";
import { Random, wilsonInterval } from "@octavo/statistics";
import type { Answer } from "../answers/answer.js";
import type { EvalCase } from "../cases/eval-case.js";
import type { Evaluator, Sample, Score } from "../evaluators/evaluator.js";
import { evaluatorTable } from "../evaluators/table.js";
import { sampleOf } from "../evaluators/testing/sample.js";
import type { Runner } from "../runners/runner.js";
import { type Evaluation, evaluate, type EvaluatedRow, type EvaluationOptions } from "./evaluate.js";
import type { EvaluatorResult } from "./summary.js";

/** An evaluator of the test's own, by what it gives for a sample. */
function scoring(
  score: (sample: Sample) => Score,
  parts: Partial<Pick<Evaluator, "name" | "needsJudge" | "output">> = {},
): Evaluator {
  return {
    name: "own",
    description: "Its own.",
    inputs: ["output"],
    output: "score",
    needsJudge: false,
    ...parts,
    evaluate: score,
  };
}

const scored = (value: number, passed = value >= 0.5): Score => ({ status: "scored", value, passed });

function samplesOf(count: number, parts: (index: number) => Partial<EvalCase> = () => ({})): Sample[] {
  return Array.from({ length: count }, (_, index) =>
    sampleOf({ output: String(index), case: { id: `case-${index}`, ...parts(index) } }),
  );
}

async function rowsOf(evaluation: Evaluation): Promise<EvaluatedRow[]> {
  const rows: EvaluatedRow[] = [];
  for await (const row of evaluation) rows.push(row);
  return rows;
}

async function summaryOf(options: EvaluationOptions): Promise<EvaluatorResult> {
  const { evaluators } = await evaluate(options).summary();
  return evaluators[0]!;
}

test("rows stream with their samples, and the summary counts them", async () => {
  const samples = samplesOf(40, (index) => ({
    tags: index % 4 === 0 ? ["json", "json", "small"] : ["prose"],
    expected: index < 30 ? { outputs: [index % 2 === 0 ? String(index) : "other"] } : {},
  }));
  const seen: (number | undefined)[] = [];
  const evaluation = evaluate({
    samples,
    evaluators: evaluatorTable.create(["exact_match", "is_json"]),
    onProgress: ({ total }) => seen.push(total),
  });
  const rows = await rowsOf(evaluation);
  assert.equal(rows.length, 80);
  assert.equal(rows.find((row) => row.sample.case.id === "case-7")?.sample, samples[7]);
  assert.deepEqual(new Set(seen), new Set([80]));

  const summary = await evaluation.summary();
  assert.deepEqual([summary.isComplete, summary.status, summary.numCases], [true, "ok", 40]);
  const [exact, json] = summary.evaluators;
  assert.deepEqual(
    [exact?.numScored, exact?.numPassed, exact?.numSkipped, exact?.numFailed, exact?.mean, exact?.passRate],
    [30, 15, 10, 0, 0.5, 0.5],
  );
  assert.deepEqual(exact?.passRateInterval, wilsonInterval(15, 30, 0.95));
  assert.deepEqual(exact?.meanInterval, exact?.passRateInterval, "of zeros and ones they are the same");
  assert.deepEqual(
    json?.tags.map(({ tag, numScored }) => [tag, numScored]),
    [
      ["json", 10],
      ["small", 10],
      ["prose", 30],
    ],
  );
});

test("a target answers the cases of a dataset, and its failures are no scores", async () => {
  const cases = samplesOf(20).map((sample) => sample.case);
  let numActive = 0;
  let mostActive = 0;
  const target = (name: string, text: string) => ({
    name,
    async answer({ id }: EvalCase): Promise<Answer> {
      mostActive = Math.max(mostActive, ++numActive);
      await new Promise(setImmediate);
      numActive--;
      const failure = { code: "timeout", httpStatus: undefined, message: "late" };
      return sampleOf({ output: text, case: { id }, ...(id === "case-3" ? { failure } : {}) }).answer;
    },
  });
  const dataset = {
    name: "twenty",
    size: 20,
    async *cases() {
      yield* cases;
    },
  };
  const evaluation = evaluate({
    dataset,
    target: target("candidate", "yes"),
    baseline: target("baseline", "no"),
    evaluators: evaluatorTable.create([{ name: "contains", options: { value: "yes" } }]),
    concurrency: 3,
  });
  const rows = await rowsOf(evaluation);
  assert.deepEqual(new Set(rows.map((row) => row.sample.baseline?.text)), new Set(["no"]));
  assert.equal(mostActive, 6, "three cases of two targets each");
  const { answerFailures, evaluators } = await evaluation.summary();
  assert.deepEqual(answerFailures, [{ name: "timeout", count: 1 }]);
  assert.deepEqual(
    [evaluators[0]?.numPassed, evaluators[0]?.numSkipped, evaluators[0]?.numFailed],
    [19, 1, 0],
  );
});

test("too many failures break the evaluation, and say whether it was a judge", async () => {
  const failing = (share: number, needsJudge: boolean) =>
    evaluate({
      samples: samplesOf(100),
      evaluators: [
        scoring(
          ({ answer }) =>
            Number(answer.text) < share
              ? { status: "failed", code: "judge_failed", reason: "down" }
              : scored(1),
          { needsJudge },
        ),
      ],
    }).summary();
  assert.equal((await failing(5, true)).status, "ok");
  const broken = await failing(6, true);
  assert.deepEqual([broken.status, broken.evaluators[0]?.status], ["judge_broken", "judge_broken"]);
  assert.deepEqual(broken.evaluators[0]?.failures, [{ name: "judge_failed", count: 6 }]);
  assert.equal(broken.evaluators[0]?.mean, 1, "failures are no zeros");
  assert.equal((await failing(6, false)).status, "evaluator_broken");
});

test("cases of one cluster widen the interval", async () => {
  const draws = new Random(5);
  const rates = Array.from({ length: 20 }, () => (draws.uniform() < 0.5 ? 0.9 : 0.1));
  const values = rates.flatMap((rate) => Array.from({ length: 25 }, () => (draws.uniform() < rate ? 1 : 0)));
  const evaluators = [scoring(({ answer }) => scored(values[Number(answer.text)]!), { output: "pass_fail" })];
  const alone = await summaryOf({ samples: samplesOf(500), evaluators });
  const together = await summaryOf({
    samples: samplesOf(500, (index) => ({ cluster: `conversation-${Math.floor(index / 25)}` })),
    evaluators,
  });
  const widthOf = ({ passRateInterval }: EvaluatorResult) => passRateInterval![1] - passRateInterval![0];
  assert.equal(together.passRate, alone.passRate);
  assert.ok(
    widthOf(together) > 3 * widthOf(alone),
    `${widthOf(together)} is not over 3 times ${widthOf(alone)}`,
  );
});

test("what never varies is not certain", async () => {
  const evaluators = [scoring(() => scored(0.7))];
  const constant = await summaryOf({ samples: samplesOf(50), evaluators });
  assert.equal(constant.meanInterval, undefined);
  assert.deepEqual(constant.passRateInterval, wilsonInterval(50, 50, 0.95));
  const clustered = await summaryOf({
    samples: samplesOf(50, (index) => ({ cluster: `${index % 10}` })),
    evaluators,
  });
  assert.deepEqual(clustered.passRateInterval, wilsonInterval(10, 10, 0.95), "ten clusters are ten");
  const one = await summaryOf({ samples: samplesOf(1), evaluators });
  assert.deepEqual([one.mean, one.meanInterval], [0.7, undefined]);
  const none = await summaryOf({ samples: [], evaluators });
  assert.deepEqual([none.mean, none.passRate, none.passRateInterval], [undefined, undefined, undefined]);
});

test("the mean's interval covers the truth about as often as it says", async () => {
  const draws = new Random(9);
  let numCovered = 0;
  for (let run = 0; run < 60; run++) {
    const values = Array.from({ length: 80 }, () => draws.uniform() ** 2);
    const { meanInterval } = await summaryOf({
      samples: samplesOf(80),
      evaluators: [scoring(({ answer }) => scored(values[Number(answer.text)]!))],
      confidence: 0.9,
      seed: run,
    });
    if (meanInterval![0] <= 1 / 3 && meanInterval![1] >= 1 / 3) numCovered++;
  }
  assert.ok(numCovered >= 48 && numCovered <= 60, `${numCovered} of 60 intervals of 90 % cover`);
});

test("more cases than clusters, and more tags than names, stay bounded and counted", async () => {
  const samples = function* () {
    for (let index = 0; index < 5000; index++) {
      yield sampleOf({ output: String(index), case: { id: `case-${index}`, tags: [`tag-${index}`] } });
    }
  };
  const summary = await evaluate({
    samples: samples(),
    evaluators: [scoring(({ answer }) => scored((Number(answer.text) % 10) / 10))],
  }).summary();
  const [own] = summary.evaluators;
  assert.deepEqual([own?.numScored, own?.tags.length], [5000, 256]);
  assert.ok(Math.abs(own!.mean! - 0.45) < 1e-9);
  const [low, high] = own!.meanInterval!;
  // a mean of 5000 independent values from 0 to 0.9
  const half = (1.96 * Math.sqrt(0.0825)) / Math.sqrt(5000);
  assert.ok(Math.abs(high - low - 2 * half) < 0.3 * half, `${low} to ${high}`);
  assert.deepEqual(summary.notes, ["only the first 256 tags are summarised"]);
});

test("wrong options are refused before anything is asked", () => {
  const own = scoring(() => scored(1));
  const wrong: readonly (readonly [Partial<EvaluationOptions>, RegExp])[] = [
    [{ evaluators: [] }, /expected at least one/],
    [{ evaluators: [own, own] }, /two are called own/],
    [{ concurrency: 0 }, /concurrency/],
    [{ maxFailureRate: 1.5 }, /maxFailureRate: expected a share/],
    [{ confidence: 1 }, /confidence: expected a share/],
  ];
  for (const [options, message] of wrong) {
    assert.throws(() => evaluate({ samples: [], evaluators: [own], ...options }), message);
  }
});

test("an abort, a broken dataset and a runner that repeats itself reject", async () => {
  const own = scoring(() => scored(1));
  const control = new AbortController();
  const aborted = evaluate({ samples: samplesOf(100), evaluators: [own], signal: control.signal });
  await assert.rejects(
    async () => {
      for await (const row of aborted) if (row.sample.case.id === "case-5") control.abort();
    },
    { name: "AbortError" },
  );
  const { isComplete, numCases } = await aborted.summary();
  assert.ok(!isComplete && numCases < 100);

  const twins = [sampleOf({ case: { id: "twin" } }), sampleOf({ case: { id: "twin" } })];
  await assert.rejects(
    evaluate({ samples: twins, evaluators: [own] }).summary(),
    (thrown) => thrown instanceof OctavoError && thrown.code === "dataset_invalid",
  );

  const stammering: Runner = {
    name: "stammering",
    async *run(samples) {
      for await (const sample of samples) {
        const row = { caseId: sample.case.id, evaluator: "own", score: scored(1) };
        yield row;
        yield row;
      }
    },
    close: () => Promise.resolve(),
  };
  await assert.rejects(
    evaluate({ samples: samplesOf(3), evaluators: [own], runner: stammering }).summary(),
    /scored own of case case-0 once too often/,
  );
});

test("rows are read once", async () => {
  const evaluation = evaluate({ samples: samplesOf(3), evaluators: [scoring(() => scored(1))] });
  await evaluation.summary();
  await assert.rejects(() => rowsOf(evaluation), /can be read once/);
});

test("a judge that judges its own answers is a note of the summary", async () => {
  const judged = (judge: string) => ({ ...scoring(() => scored(1)), judge });
  const samples = samplesOf(3).map((sample) => ({
    ...sample,
    answer: { ...sample.answer, model: "Octavo-mini" },
  }));
  const own = await evaluate({ samples, evaluators: [judged("octavo-mini")] }).summary();
  assert.match(own.notes.join(), /^octavo-mini judges its own answers/);
  assert.equal(own.status, "ok");
  const other = await evaluate({ samples, evaluators: [judged("large")] }).summary();
  assert.deepEqual(other.notes, []);
});
