import assert from "node:assert/strict";
import test from "node:test";
import { Random } from "@octavo/statistics";
import { coin, mostByChance } from "../testing/simulate.js";
import { lossEffect, planPairs } from "./loss-effect.js";
import { comparePaired, type PairedScore } from "./paired-comparison.js";
import { casesForSequence, type Look, sequenceBounds } from "./sequence-bounds.js";
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

function verdictOf(scores: readonly PairedScore[], look: Look) {
  const compared = comparePaired(scores, look)!;
  return overallVerdict(decide([lossEffect("exact", compared, limits)], limits.alpha));
}

test("stopping as soon as it is decided errs at most alpha of the time, unlike with an interval for one look", () => {
  const looks = [20, 40, 60, 80, 120, 160, 200];
  const runs = 2000;
  const decided = { sequence: 0, planned: 0, fixed: 0 };
  const lookOf: Readonly<Record<keyof typeof decided, (count: number) => Look>> = {
    sequence: () => "any",
    planned: (count) => (count === looks.at(-1) ? "planned" : "early"),
    fixed: () => "once",
  };
  for (let seed = 0; seed < runs; seed++) {
    // on the margin neither verdict is right
    const scores = scoresOf(new Random(seed), looks.at(-1)!, 0.05, 0.05);
    for (const kind of ["sequence", "planned", "fixed"] as const)
      if (looks.some((count) => verdictOf(scores.slice(0, count), lookOf[kind](count)) !== "inconclusive"))
        decided[kind] += 1;
  }
  for (const kind of ["sequence", "planned"] as const)
    assert(decided[kind] > 0 && decided[kind] <= mostByChance(runs, limits.alpha), JSON.stringify(decided));
  assert(decided.fixed > 1.5 * mostByChance(runs, limits.alpha), JSON.stringify(decided));
});

test("a plain fail of all planned cases is not lost to looking early", () => {
  // 400 cases, 0.88 before and 0.798 after
  const scores = Array.from({ length: 400 }, (_, index) => ({
    cluster: String(index),
    before: index < 352 ? 1 : 0,
    after: index < 45 ? 0 : index < 364 ? 1 : 0,
  }));
  const shuffled = new Random(1).shuffle([...scores]);
  const effect = lossEffect("exact", comparePaired(shuffled, "planned")!, { margin: 0.02, alpha: 0.05 });
  assert.equal(overallVerdict(decide([effect], 0.05)), "fail", JSON.stringify(effect));
  for (let seed = 0; seed < 300; seed++) {
    const random = new Random(seed);
    const drawn = scoresOf(random, 100 + random.integer(0, 300), random.uniform() / 5, random.uniform() / 10);
    const half = lossEffect("exact", comparePaired(drawn)!, { ...limits, alpha: limits.alpha / 2 });
    const fixed = overallVerdict(decide([half], limits.alpha / 2));
    if (fixed !== "inconclusive") assert.equal(verdictOf(drawn, "planned"), fixed, `seed ${seed}`);
  }
});

test("a plan says how many cases decide at the loss that was seen", () => {
  for (const loss of [0, 0.02, 0.12]) {
    const compared = comparePaired(scoresOf(new Random(3), 150, loss, 0.04))!;
    const { neededAtObserved, basis } = planPairs([{ name: "exact", compared, margin: 0.05 }], {
      alpha: 0.05,
      power: 0.8,
    });
    assert(neededAtObserved !== undefined && basis.includes(`${neededAtObserved} cases decide`), basis);
    const rate = (compared.lost + compared.gained) / compared.count;
    let decided = 0;
    for (let seed = 0; seed < 100; seed++) {
      const flips = (rate - compared.loss) / 2;
      const again = scoresOf(new Random(seed), neededAtObserved, compared.loss, flips);
      if (verdictOf(again, "once") !== "inconclusive") decided++;
    }
    assert(decided >= 60, `${loss}: ${decided} of 100 with ${neededAtObserved}`);
  }
});

test("what was decided once stays decided", () => {
  const random = new Random(5);
  const lost = scoresOf(random, 120, 0.3, 0.02);
  const count = lost.findIndex((_, index) => index > 5 && verdictOf(lost.slice(0, index), "any") === "fail");
  assert(count > 10 && count < 80, String(count));
  const later = scoresOf(random, 200, 0, 0.02).map((one) => ({ ...one, cluster: `later ${one.cluster}` }));
  const after = [...lost.slice(0, count), ...later];
  assert.equal(verdictOf(after, "any"), "fail");
});

test("clusters count once, graded scores too", () => {
  const scores = Array.from({ length: 400 }, (_, index) => ({
    cluster: String(index % 40),
    before: 0.9,
    after: 0.6,
  }));
  const compared = comparePaired(scores, "any")!;
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
    if (verdictOf(scoresOf(new Random(seed), planned, 0, 0.02), "any") === "pass") shorter++;
  assert(shorter >= 30 && shorter <= 95, String(shorter));
  const compared = comparePaired(scoresOf(new Random(1), 60, 0, 0.02), "any")!;
  const size = planPairs([{ name: "exact", compared, margin: 0.05 }], { alpha: 0.05, power: 0.8 });
  assert(size.needed! > 60);
  assert.match(size.basis, /looked at as they come, in half of all runs/);
});
