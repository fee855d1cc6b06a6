import assert from "node:assert/strict";
import test from "node:test";
import { Random } from "../random.js";
import { asymptoticMeanSequence, MeanEProcess, noMeanEvidence } from "./mean-e-process.js";

const close = (actual: number, expected: number): void =>
  assert.ok(Math.abs(actual - expected) <= 1e-12 * Math.abs(expected), `${actual}, expected ${expected}`);

test("capital is the weighted mean of what the bets won", () => {
  const harm = new MeanEProcess({ mean: 0, side: "below" });
  for (const value of [-1, 0, 1, -0.5]) harm.observe(value);
  const won = (share: number): number => (1 + share) * (1 - share) * (1 + share / 2);
  close(harm.value, 0.15 * won(0.15) + 0.35 * won(0.3) + 0.35 * won(0.45) + 0.15 * won(0.65));
  const fit = new MeanEProcess({ mean: -0.2, side: "above" });
  fit.observe(0.2);
  close(fit.value, 1 + (0.15 * 0.15 + 0.35 * 0.3 + 0.35 * 0.45 + 0.15 * 0.65) * (0.4 / 0.8));
});

test("order does not matter, and evidence of several observers adds up", () => {
  const random = new Random(5);
  const values = Array.from({ length: 300 }, () => 2 * random.uniform() - 1);
  const whole = new MeanEProcess({ mean: 0.1, side: "below" });
  for (const value of values) whole.observe(value);
  const parts = [0, 1, 2].map(() => new MeanEProcess({ mean: 0.1, side: "below" }));
  for (const [index, value] of random.shuffle(values).entries()) parts[index % 3]!.observe(value);
  const stored = JSON.parse(JSON.stringify(parts[0]!.evidence)) as typeof noMeanEvidence;
  const sum = new MeanEProcess({ mean: 0.1, side: "below" }, stored);
  sum.add(parts[1]!.evidence);
  sum.add(parts[2]!.evidence);
  assert.equal(sum.count, 300);
  assert.ok(Math.abs(Math.log(sum.value) - Math.log(whole.value)) < 1e-9);
});

test("under the worst mean that is allowed, it errs less often than alpha however often one looks", () => {
  const random = new Random(11);
  for (const { mean, side, discordant } of [
    { mean: 0, side: "below", discordant: 0.04 },
    { mean: -0.02, side: "above", discordant: 0.06 },
    { mean: 0, side: "below", discordant: 0.5 },
  ] as const) {
    const more = (discordant + mean) / 2;
    let wrong = 0;
    const runs = 1500;
    for (let run = 0; run < runs; run++) {
      const process = new MeanEProcess({ mean, side });
      for (let i = 0; i < 600; i++) {
        const drawn = random.uniform();
        process.observe(drawn < more ? 1 : drawn < discordant ? -1 : 0);
        if (process.value < 20) continue;
        wrong++;
        break;
      }
    }
    assert.ok(wrong <= runs * 0.05 + 3 * Math.sqrt(runs * 0.05 * 0.95), `${wrong} of ${runs}`);
  }
});

test("its expectation is at most 1 at any time: summed over every sequence of three values", () => {
  for (const [mean, side] of [
    [-0.1, "above"],
    [0.3, "below"],
  ] as const) {
    const chances = new Map([
      [-1, 0.5 - mean / 2 - 0.1],
      [0, 0.2],
      [1, 0.5 + mean / 2 - 0.1],
    ]);
    let expected = 0;
    for (const a of chances.keys())
      for (const b of chances.keys())
        for (const c of chances.keys()) {
          const process = new MeanEProcess({ mean, side });
          for (const value of [a, b, c]) process.observe(value);
          expected += chances.get(a)! * chances.get(b)! * chances.get(c)! * process.value;
        }
    close(expected, 1);
  }
});

test("a loss of three points is found, and none is where there is none", () => {
  const random = new Random(3);
  const harm = new MeanEProcess({ mean: 0, side: "below" });
  while (harm.value < 100 && harm.count < 3000) {
    harm.observe(Number(random.uniform() < 0.95) - Number(random.uniform() < 0.98));
  }
  assert.ok(harm.value >= 100 && harm.count < 1500, `after ${harm.count}`);
});

test("the interval holds the mean of skewed values at all times but few", () => {
  const random = new Random(17);
  let outside = 0;
  const runs = 300;
  for (let run = 0; run < runs; run++) {
    let evidence = noMeanEvidence;
    let missed = false;
    const process = new MeanEProcess({ mean: 0, side: "below" }, evidence);
    for (let i = 1; i <= 1000; i++) {
      const drawn = random.uniform();
      process.observe(drawn < 0.05 ? -1 : drawn < 0.07 ? 1 : 0);
      ({ evidence } = process);
      if (i < 200 || i % 20 > 0) continue;
      const [low, high] = asymptoticMeanSequence(evidence, { confidence: 0.9 })!;
      if (low > -0.03 || high < -0.03) missed = true;
    }
    outside += Number(missed);
  }
  assert.ok(outside / runs <= 0.1, `${outside} of ${runs}`);
});

test("the interval is the published formula", () => {
  // Theorem 2.2 by hand: 100 values of mean 0 and variance 100/99, rho chosen for 100
  const [low, high] = asymptoticMeanSequence(
    { ...noMeanEvidence, count: 100, sum: 0, sumOfSquares: 100 },
    { tightestAt: 100 },
  )!;
  const rho2 = (-2 * Math.log(0.05) + Math.log(-2 * Math.log(0.05) + 1)) / 100;
  const margin =
    Math.sqrt(100 / 99) *
    Math.sqrt(((2 * (100 * rho2 + 1)) / (100 ** 2 * rho2)) * Math.log(Math.sqrt(100 * rho2 + 1) / 0.05));
  assert.ok(Math.abs(high - margin) < 1e-12 && Math.abs(low + margin) < 1e-12);
  assert.equal(asymptoticMeanSequence(noMeanEvidence), undefined);
});

test("misuse is an error", () => {
  assert.throws(() => new MeanEProcess({ mean: 1, side: "below" }), { code: "invalid_option" });
  assert.throws(() => new MeanEProcess({ mean: NaN, side: "above" }), { code: "invalid_option" });
  const process = new MeanEProcess({ mean: 0, side: "above" });
  for (const value of [1.01, -2, NaN])
    assert.throws(() => process.observe(value), { code: "invalid_option", param: "value" });
  assert.throws(() => process.add({ ...noMeanEvidence, logCapitals: [0] }), { param: "logCapitals" });
  assert.throws(() => process.add({ ...noMeanEvidence, sum: Infinity }), { param: "sum" });
  assert.throws(() => asymptoticMeanSequence(noMeanEvidence, { confidence: 1 }), { code: "invalid_option" });
});
