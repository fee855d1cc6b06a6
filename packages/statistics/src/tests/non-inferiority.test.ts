import assert from "node:assert/strict";
import test from "node:test";
import { binomialPmf } from "../distributions/binomial.js";
import { pairsForNonInferiority } from "../planning/paired.js";
import { Random } from "../random.js";
import { mcnemarExact, mcnemarNonInferiority } from "./mcnemar.js";

/** Exact chance of a verdict: all tables of n pairs, weighted by their probability. */
function chanceOf(
  verdict: "pass" | "fail",
  {
    n,
    shareLost,
    shareGained,
    margin,
    alpha,
  }: Record<"n" | "shareLost" | "shareGained" | "margin" | "alpha", number>,
): number {
  let chance = 0;
  for (let lost = 0; lost <= n; lost++) {
    const first = binomialPmf(lost, n, shareLost);
    if (first < 1e-9) continue;
    for (let gained = 0; gained <= n - lost; gained++) {
      const probability = first * binomialPmf(gained, n - lost, shareGained / (1 - shareLost));
      if (probability < 1e-10) continue;
      const table = { both: n - lost - gained, lost, gained, neither: 0 };
      if (mcnemarNonInferiority(table, { margin, alpha }).verdict === verdict) chance += probability;
    }
  }
  return chance;
}

for (const n of [40, 100, 200]) {
  for (const margin of [0.02, 0.05]) {
    test(`${n} pairs, margin ${margin}: a loss of just the margin passes, or fails, no more often than alpha`, () => {
      for (const shareGained of [0, 0.01, 0.05, 0.2]) {
        const truth = { n, shareLost: shareGained + margin, shareGained, margin, alpha: 0.025 };
        const passes = chanceOf("pass", truth);
        assert.ok(passes <= 0.0255, `passes ${passes} at ${shareGained}`);
        const fails = chanceOf("fail", truth);
        assert.ok(fails <= 0.0255, `fails ${fails} at ${shareGained}`);
        // Where pairs move often enough, the correction costs little.
        if (n * shareGained >= 10)
          assert.ok(passes > 0.01 && fails > 0.01, `${passes}, ${fails} at ${shareGained}`);
      }
    });
  }
}

test("as many pairs as planned pass as often as planned", () => {
  for (const [discordance, margin, difference] of [
    [0.1, 0.05, 0],
    [0.05, 0.05, 0],
    [0.02, 0.02, 0],
    [0.2, 0.05, 0.01],
    [0.3, 0.1, -0.02],
  ] as const) {
    const n = pairsForNonInferiority({ discordance, margin, difference, power: 0.8 });
    const shares = { shareLost: (discordance - difference) / 2, shareGained: (discordance + difference) / 2 };
    const power = chanceOf("pass", { n, ...shares, margin, alpha: 0.025 });
    assert.ok(power >= 0.79 && power < 0.85, `${discordance}, ${margin}: ${power} with ${n} pairs`);
  }
});

test("a model that never differs passes with hardly more pairs than the exact test needs", () => {
  // 0.98^183 < 0.025: with so many pairs a loss of 2 % would have shown.
  const verdict = (neither: number) =>
    mcnemarNonInferiority({ both: 0, lost: 0, gained: 0, neither }, { margin: 0.02 }).verdict;
  assert.equal(verdict(182), "inconclusive");
  assert.equal(verdict(192), "pass");
});

test("what the interval shows is what the p values say", () => {
  const random = new Random(3);
  for (let round = 0; round < 2000; round++) {
    const table = {
      both: random.integer(0, 200),
      lost: random.integer(0, 12),
      gained: random.integer(0, 12),
      neither: random.integer(1, 40),
    };
    const alpha = 0.025;
    const { verdict, pValue, inferiorityPValue, interval, estimate } = mcnemarNonInferiority(table, {
      margin: 0.03,
      alpha,
    });
    const expected = pValue < alpha ? "pass" : inferiorityPValue < alpha ? "fail" : "inconclusive";
    assert.equal(verdict, expected, JSON.stringify(table));
    assert.ok(interval[0] <= estimate && estimate <= interval[1], JSON.stringify(table));
    assert.ok(interval[0] >= -1 && interval[1] <= 1);
  }
});

test("McNemar's exact test errs at most alpha of the time, whatever the discordance", () => {
  for (const discordant of [1, 5, 9, 20, 60]) {
    for (const alpha of [0.01, 0.05, 0.2]) {
      let rejected = 0;
      let midRejected = 0;
      for (let lost = 0; lost <= discordant; lost++) {
        const { pValue, midPValue } = mcnemarExact({ lost, gained: discordant - lost });
        assert.ok(midPValue <= pValue && midPValue >= 0);
        if (pValue <= alpha) rejected += binomialPmf(lost, discordant, 0.5);
        if (midPValue <= alpha) midRejected += binomialPmf(lost, discordant, 0.5);
      }
      assert.ok(rejected <= alpha, `${discordant} pairs at ${alpha}: ${rejected}`);
      assert.ok(midRejected <= 1.5 * alpha && midRejected >= rejected);
    }
  }
});
