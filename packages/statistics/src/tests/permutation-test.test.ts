import assert from "node:assert/strict";
import test from "node:test";
import { Random } from "../random.js";
import { quantile } from "../intervals/quantile.js";
import { permutationTest, signFlipTest } from "./permutation-test.js";
import { pairedTTest, welchTTest } from "./t-tests.js";

test("permutations agree with t tests where these hold", () => {
  const random = new Random(8);
  const first = Array.from({ length: 60 }, () => random.normal() + 0.3);
  const second = Array.from({ length: 80 }, () => random.normal());
  for (const alternative of ["two-sided", "less", "greater"] as const) {
    const { pValue, statistic } = permutationTest(first, second, { alternative });
    const t = welchTTest(first, second, { alternative });
    assert.ok(Math.abs(pValue - t.pValue!) < 0.02, `${alternative}: ${pValue} and ${t.pValue}`);
    assert.ok(Math.abs(statistic - t.estimate) < 1e-12);
    const flipped = signFlipTest(first, { alternative }).pValue;
    assert.ok(Math.abs(flipped - pairedTTest(first, { alternative }).pValue!) < 0.02, alternative);
  }
});

test("p is exact where all divisions can be counted by hand", () => {
  // One of 20 divisions of 1 to 6 has the three greatest on one side.
  const { pValue } = permutationTest([4, 5, 6], [1, 2, 3], { alternative: "greater", resamples: 20_000 });
  assert.ok(Math.abs(pValue - 1 / 20) < 0.006, String(pValue));
  assert.ok(Math.abs(signFlipTest([1, 2, 3, 4], { alternative: "greater" }).pValue - 1 / 16) < 0.008);
});

test("any statistic, and no p value of 0", () => {
  const first = Array.from({ length: 40 }, (_, index) => 100 + index);
  const second = Array.from({ length: 40 }, (_, index) => index);
  const median = (a: readonly number[], b: readonly number[]) => quantile(a, 0.5) - quantile(b, 0.5);
  assert.deepEqual(permutationTest(first, second, { statistic: median, resamples: 99 }), {
    statistic: 100,
    pValue: 0.01,
  });
});

test("differences of one cluster change sign together", () => {
  const values = Array.from({ length: 12 }, (_, index) => (index < 4 ? 1 : index < 8 ? 1.1 : 0.9));
  const alone = signFlipTest(values, { alternative: "greater" }).pValue;
  const clusters = values.map((_, index) => Math.floor(index / 4));
  const together = signFlipTest(values, { alternative: "greater", clusters }).pValue;
  assert.ok(alone < 0.005);
  // Three clusters: one of eight assignments is as extreme.
  assert.ok(Math.abs(together - 1 / 8) < 0.02, String(together));
  assert.throws(() => signFlipTest(values, { clusters: [1] }), { param: "clusters" });
});

test("errs at most alpha of the time", () => {
  const random = new Random(12);
  let rejected = 0;
  const rounds = 1000;
  for (let round = 0; round < rounds; round++) {
    const draw = () => Array.from({ length: 8 }, () => random.exponential(1));
    if (permutationTest(draw(), draw(), { resamples: 99, seed: round }).pValue <= 0.05) rejected++;
  }
  assert.ok(rejected <= 0.065 * rounds, String(rejected));
});
