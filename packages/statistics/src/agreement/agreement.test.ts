import assert from "node:assert/strict";
import test from "node:test";
import { Random } from "../random.js";
import { cohenKappa } from "./cohen-kappa.js";
import { balancedAccuracy, correctedRate } from "./judge-accuracy.js";
import { predictionPoweredMean } from "./prediction-powered-mean.js";

const sensitivity = 0.85;
const specificity = 0.75;

function judge(random: Random, cases: number, trueRate: number) {
  const table = { truePositive: 0, positives: 0, trueNegative: 0, negatives: 0, passed: 0 };
  for (let i = 0; i < cases; i++) {
    const isRight = random.uniform() < trueRate;
    const says = random.uniform() < (isRight ? sensitivity : 1 - specificity);
    if (isRight) table.positives++;
    else table.negatives++;
    if (isRight && says) table.truePositive++;
    if (!isRight && !says) table.trueNegative++;
    if (says) table.passed++;
  }
  return table;
}

test("a corrected rate covers the truth where the judge's own rate is far off", () => {
  const random = new Random(41);
  const rounds = 2000;
  for (const trueRate of [0.5, 0.9]) {
    let covered = 0;
    let uncorrected = 0;
    let sum = 0;
    for (let round = 0; round < rounds; round++) {
      const labelled = judge(random, 200, 0.6);
      const judged = judge(random, 400, trueRate);
      const { estimate, interval } = correctedRate(
        { successes: judged.passed, trials: 400 },
        {
          sensitivity: { successes: labelled.truePositive, trials: labelled.positives },
          specificity: { successes: labelled.trueNegative, trials: labelled.negatives },
        },
      );
      sum += estimate!;
      uncorrected += judged.passed / 400;
      if (interval![0] <= trueRate && trueRate <= interval![1]) covered++;
    }
    assert.ok(covered >= 0.93 * rounds && covered <= 0.985 * rounds, `${trueRate}: ${covered}`);
    assert.ok(Math.abs(sum / rounds - trueRate) < 0.01);
    assert.ok(Math.abs(uncorrected / rounds - trueRate) > 0.03);
  }
});

test("a judge that is no better than chance corrects nothing", () => {
  const coin = { sensitivity: { successes: 10, trials: 20 }, specificity: { successes: 10, trials: 20 } };
  const result = correctedRate({ successes: 30, trials: 40 }, coin);
  assert.equal(result.estimate, undefined);
  assert.equal(result.interval, undefined);
  assert.equal(result.uncorrected, 0.75);
});

test("balanced accuracy is covered about as often as it says", () => {
  const random = new Random(14);
  const rounds = 2000;
  let covered = 0;
  for (let round = 0; round < rounds; round++) {
    const labelled = judge(random, 150, 0.8);
    const { interval } = balancedAccuracy({
      sensitivity: { successes: labelled.truePositive, trials: labelled.positives },
      specificity: { successes: labelled.trueNegative, trials: labelled.negatives },
    });
    if (interval[0] <= 0.8 && 0.8 <= interval[1]) covered++;
  }
  assert.ok(covered >= 0.935 * rounds && covered <= 0.98 * rounds, String(covered));
});

test("predictions narrow the interval of a mean when they are good, and do no harm when they are noise", () => {
  const random = new Random(15);
  const rounds = 2000;
  for (const [quality, mostWidth] of [
    [0.9, 0.75],
    [0, 1.02],
  ] as const) {
    let covered = 0;
    let widths = 0;
    for (let round = 0; round < rounds; round++) {
      const draw = () => {
        const label = random.uniform() < 0.7 ? 1 : 0;
        return [label, quality * label + (1 - quality) * random.uniform() + 0.2] as const;
      };
      const labelled = Array.from({ length: 60 }, draw);
      const labels = labelled.map(([label]) => label);
      const { interval } = predictionPoweredMean({
        labels,
        judgedLabelled: labelled.map(([, judged]) => judged),
        judgedOnly: Array.from({ length: 300 }, () => draw()[1]),
      });
      if (interval![0] <= 0.7 && 0.7 <= interval![1]) covered++;
      const share = labels.reduce<number>((all, label) => all + label, 0) / 60;
      widths += (interval![1] - interval![0]) / (2 * 1.96 * Math.sqrt((share * (1 - share)) / 59));
    }
    assert.ok(covered >= 0.925 * rounds, `quality ${quality}: ${covered}`);
    assert.ok(widths / rounds < mostWidth, `quality ${quality}: ${widths / rounds}`);
  }
});

test("kappa's interval holds it, and nothing is claimed of raters who never differ", () => {
  const random = new Random(19);
  let covered = 0;
  const rounds = 2000;
  // Right answers 60 % of the time, both raters right about it 90 %: kappa of the population below.
  const agree = 0.9 * 0.9 + 0.1 * 0.1;
  const pass = 0.6 * 0.9 + 0.4 * 0.1;
  const expected = pass * pass + (1 - pass) * (1 - pass);
  const truth = (agree - expected) / (1 - expected);
  for (let round = 0; round < rounds; round++) {
    const counts = [
      [0, 0],
      [0, 0],
    ];
    for (let i = 0; i < 120; i++) {
      const label = random.uniform() < 0.6 ? 1 : 0;
      const rate = () => (random.uniform() < 0.9 ? label : 1 - label);
      counts[rate()]![rate()]! += 1;
    }
    const [low, high] = cohenKappa(counts).interval!;
    if (low <= truth && truth <= high) covered++;
  }
  assert.ok(covered >= 0.93 * rounds && covered <= 0.97 * rounds, String(covered));
  const same = cohenKappa([
    [5, 0],
    [0, 9],
  ]);
  assert.equal(same.kappa, 1);
  assert.equal(same.interval, undefined);
  assert.equal(cohenKappa([[7]]).kappa, undefined);
});
