import assert from "node:assert/strict";
import test from "node:test";
import { Random } from "@octavo/statistics";
import { coin, mostByChance } from "../testing/simulate.js";
import { lossEffect, planPairs } from "./loss-effect.js";
import { comparePaired, type PairedScore } from "./paired-comparison.js";
import { casesForSequence, sequenceBounds } from "./sequence-bounds.js";
import { decide, overallVerdict } from "./verdicts.js";

const limits = { margin: 0.05, alpha: 0.05 };

function scoresOf(random: Random, count: number, loss: number, flips: number): readonly PairedScore[] {
  return Array.from({ length: count }, (_, index) => {
    const lost = coin(random, loss + flips);
    const gained = lost === 0 ? coin(random, flips / (1 - loss - flips)) : 0;
    const before = lost === 1 ? 1 : gained === 1 ? 0 : coin(random, 0.7);
    return { cluster: String(index), before, after: before - lost + gained };
  });
}

function verdictOf(scores: readonly PairedScore[], isSequential: boolean) {
  const compared = comparePaired(scores, { isSequential })!;
  return overallVerdict(decide([lossEffect("exact", compared, limits)], limits.alpha));
}

test("stopping as soon as it is decided errs at most alpha of the time, unlike with an interval for one look", () => {
  const looks = [20, 40, 60, 80, 120, 160, 200];
  const runs = 2000;
  const decided = { sequence: 0, fixed: 0 };
  for (let seed = 0; seed < runs; seed++) {
    // on the margin neither verdict is right
    const scores = scoresOf(new Random(seed), looks.at(-1)!, 0.05, 0.05);
    for (const [kind, isSequential] of [
      ["sequence", true],
      ["fixed", false],
    ] as const)
      if (looks.some((count) => verdictOf(scores.slice(0, count), isSequential) !== "inconclusive"))
        decided[kind] += 1;
  }
  assert(
    decided.sequence > 0 && decided.sequence <= mostByChance(runs, limits.alpha),
    JSON.stringify(decided),
  );
  assert(decided.fixed > 1.5 * mostByChance(runs, limits.alpha), JSON.stringify(decided));
});

test("what was decided once stays decided", () => {
  const random = new Random(5);
  const lost = scoresOf(random, 120, 0.3, 0.02);
  const count = lost.findIndex((_, index) => index > 5 && verdictOf(lost.slice(0, index), true) === "fail");
  assert(count > 10 && count < 80, String(count));
  const later = scoresOf(random, 200, 0, 0.02).map((one) => ({ ...one, cluster: `later ${one.cluster}` }));
  const after = [...lost.slice(0, count), ...later];
  assert.equal(verdictOf(after, true), "fail");
});

test("clusters count once, graded scores too", () => {
  const scores = Array.from({ length: 400 }, (_, index) => ({
    cluster: String(index % 40),
    before: 0.9,
    after: 0.6,
  }));
  const compared = comparePaired(scores, { isSequential: true })!;
  assert.equal(compared.numClusters, 40);
  assert.equal(compared.mcnemarPValue, undefined);
  assert(Math.abs(compared.loss - 0.3) < 1e-12);
  const alone = sequenceBounds(Array.from({ length: 40 }, () => 0.3)).intervalAt(0.95);
  const [low, high] = compared.intervalAt(0.95)!;
  assert(Math.abs(low - alone[0]) < 1e-9 && Math.abs(high - alone[1]) < 1e-9);
});

test("how many cases it takes is planned from how many change, and is about what half of all runs take", () => {
  assert.equal(casesForSequence(0.5, { margin: 1e-5, alpha: 0.05 }), undefined);
  const planned = casesForSequence(0.04, limits)!;
  assert(planned > 100 && planned < 400, String(planned));
  let shorter = 0;
  for (let seed = 0; seed < 100; seed++)
    if (verdictOf(scoresOf(new Random(seed), planned, 0, 0.02), true) === "pass") shorter++;
  assert(shorter >= 30 && shorter <= 95, String(shorter));
  const compared = comparePaired(scoresOf(new Random(1), 60, 0, 0.02), { isSequential: true })!;
  const size = planPairs([{ name: "exact", compared, margin: 0.05 }], { alpha: 0.05, power: 0.8 });
  assert(size.needed! > 60);
  assert.match(size.basis, /looked at as they come, in half of all runs/);
});
