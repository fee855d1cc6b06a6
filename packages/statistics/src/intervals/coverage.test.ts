import assert from "node:assert/strict";
import test from "node:test";
import { binomialPmf } from "../distributions/binomial.js";
import { Random } from "../random.js";
import { pairedDifference } from "./paired-difference.js";
import { clopperPearson, newcombeDifference, wilsonInterval } from "./proportion.js";
import { quantileInterval } from "./quantile.js";

const shares = [0.01, 0.1, 0.3, 0.5, 0.95];

/** Exact: the probability of all outcomes whose interval holds the truth. */
function coverage(trials: number, p: number, interval: (k: number) => readonly [number, number]): number {
  let covered = 0;
  for (let k = 0; k <= trials; k++) {
    const [low, high] = interval(k);
    if (low <= p && p <= high) covered += binomialPmf(k, trials, p);
  }
  return covered;
}

test("Clopper and Pearson never cover less than they say, Wilson about as much", () => {
  for (const trials of [5, 30, 200]) {
    for (const p of shares) {
      assert.ok(coverage(trials, p, (k) => clopperPearson(k, trials)) >= 0.95 - 1e-12);
    }
    const wilson = shares.map((p) => coverage(trials, p, (k) => wilsonInterval(k, trials)));
    assert.ok(wilson.reduce((sum, value) => sum + value, 0) / shares.length > 0.94, wilson.join());
  }
});

test("differences of two proportions are covered about as often as they say", () => {
  const [n, m] = [40, 60];
  for (const [p, q] of [
    [0.9, 0.8],
    [0.5, 0.5],
    [0.05, 0.1],
  ] as const) {
    let covered = 0;
    for (let a = 0; a <= n; a++) {
      for (let b = 0; b <= m; b++) {
        const [low, high] = newcombeDifference(
          { successes: a, trials: n },
          { successes: b, trials: m },
        ).interval;
        if (low <= p - q && p - q <= high) covered += binomialPmf(a, n, p) * binomialPmf(b, m, q);
      }
    }
    assert.ok(covered > 0.94 && covered < 0.98, `${p} and ${q}: ${covered}`);
  }
});

test("paired differences are covered about as often as they say, right answers being alike on both sides", () => {
  const random = new Random(12);
  const rounds = 2000;
  for (const [share, lost, gained] of [
    [0.8, 0.08, 0.03],
    [0.4, 0.1, 0.1],
  ] as const) {
    let covered = 0;
    for (let round = 0; round < rounds; round++) {
      const table = { both: 0, lost: 0, gained: 0, neither: 0 };
      for (let pair = 0; pair < 150; pair++) {
        const u = random.uniform();
        if (u < lost) table.lost++;
        else if (u < lost + gained) table.gained++;
        else if (u < lost + gained + share) table.both++;
        else table.neither++;
      }
      const [low, high] = pairedDifference(table).interval;
      if (low <= gained - lost && gained - lost <= high) covered++;
    }
    assert.ok(covered > 0.935 * rounds && covered < 0.98 * rounds, String(covered));
  }
});

test("order statistics cover a quantile at least as often as they say, whatever the distribution", () => {
  const random = new Random(5);
  const rounds = 2000;
  for (const [level, n, confidence] of [
    [0.5, 40, 0.9],
    [0.9, 80, 0.95],
  ] as const) {
    let covered = 0;
    for (let round = 0; round < rounds; round++) {
      const values = Array.from({ length: n }, () => random.exponential(1));
      const [low, high] = quantileInterval(values, level, confidence)!;
      const truth = -Math.log(1 - level);
      if (low <= truth && truth <= high) covered++;
    }
    assert.ok(covered >= (confidence - 0.012) * rounds, `${level}: ${covered}`);
  }
});
