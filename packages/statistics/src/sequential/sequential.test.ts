import assert from "node:assert/strict";
import test from "node:test";
import { Random } from "../random.js";
import { BoundedMeanSequence } from "./bounded-mean-sequence.js";
import { EProcess, exceedanceRateBound } from "./e-process.js";

/** How often the interval ever excluded the mean. */
function misses(
  draw: (random: Random) => number,
  truth: number,
  options: { readonly range?: [number, number] },
): number {
  const random = new Random(17);
  let missed = 0;
  for (let round = 0; round < 400; round++) {
    const sequence = new BoundedMeanSequence({ ...options, confidence: 0.9 });
    // what was out once stays out: the last interval tells of all before it
    for (let i = 0; i < 300; i++) sequence.observe(draw(random));
    const [low, high] = sequence.interval;
    if (truth < low || truth > high) missed++;
  }
  return missed / 400;
}

test("a confidence sequence holds the mean at all times, as often as it says", () => {
  assert.ok(misses((random) => Number(random.uniform() < 0.9), 0.9, {}) <= 0.12);
  assert.ok(misses((random) => random.beta(2, 6), 0.25, {}) <= 0.12);
  assert.ok(misses((random) => random.integer(-1, 1), 0, { range: [-1, 1] }) <= 0.12);
});

test("a confidence sequence narrows, never widens, and is not much wider than a fixed interval", () => {
  const random = new Random(3);
  const sequence = new BoundedMeanSequence();
  assert.deepEqual(sequence.interval, [0, 1]);
  assert.equal(sequence.mean, undefined);
  let width = 1;
  for (let i = 0; i < 2000; i++) {
    sequence.observe(Number(random.uniform() < 0.8));
    if (i % 40 !== 39) continue;
    const [low, high] = sequence.interval;
    assert.ok(high - low <= width);
    width = high - low;
  }
  // A fixed 95 % interval of 2000 is 0.035 wide.
  assert.ok(width < 0.1, String(width));
  assert.ok(Math.abs(sequence.mean! - 0.8) < 0.03);
});

test("p values of a confidence sequence say what its interval says, at every level", () => {
  const random = new Random(41);
  const sequence = new BoundedMeanSequence({ range: [-1, 1] });
  assert.equal(sequence.pValueAbove(0), 1);
  assert.equal(sequence.pValueBelow(0), 1);
  for (let i = 0; i < 400; i++) sequence.observe(random.uniform() < 0.3 ? 1 : 0);
  const [low, high] = sequence.interval;
  assert.ok(low > 0.15 && high < 0.45, `${low} to ${high}`);
  for (const [value, excluded] of [
    [low - 1e-6, true],
    [low + 1e-6, false],
  ] as const)
    assert.equal(2 * sequence.pValueAbove(value) <= 0.05, excluded);
  assert.ok(2 * sequence.pValueBelow(high + 1e-6) <= 0.05 && 2 * sequence.pValueBelow(high - 1e-6) > 0.05);
  // there is nothing below the range, and everything is within it
  assert.deepEqual([sequence.pValueAbove(-2), sequence.pValueAbove(1), sequence.pValueBelow(2)], [0, 1, 0]);
  assert.ok(sequence.pValueAbove(0) < 1e-6);
});

test("values that never vary are told from a margin of two points after about 250", () => {
  const sequence = new BoundedMeanSequence({ range: [-1, 1] });
  while (sequence.interval[1] > 0.02) sequence.observe(0);
  assert.ok(sequence.count > 192 && sequence.count < 300, String(sequence.count));
});

test("an e-process alarms at most alpha of the time, however long it runs, and finds a tripled rate", () => {
  const random = new Random(23);
  let alarms = 0;
  let found = 0;
  const rounds = 1000;
  for (let round = 0; round < rounds; round++) {
    const quiet = new EProcess({ rate: 0.01 });
    for (let i = 0; i < 1000; i++) quiet.observe(random.uniform() < 0.01);
    if (quiet.pValue <= 0.05) alarms++;
  }
  for (let round = 0; round < 200; round++) {
    const process = new EProcess({ rate: 0.01 });
    for (let i = 0; i < 1000 && process.value < 20; i++) process.observe(random.uniform() < 0.03);
    if (process.value >= 20) found++;
  }
  assert.ok(alarms <= 0.05 * rounds, `${alarms} false alarms`);
  assert.ok(found >= 180, `${found} of 200 found`);
});

test("an e-process takes shares of clusters, and a run of nothing but exceedances does not break it", () => {
  const process = new EProcess({ rate: 0.05 });
  assert.equal(process.value, 1);
  assert.equal(process.observedRate, undefined);
  for (let i = 0; i < 2000; i++) process.observe(1);
  assert.equal(process.value, Number.MAX_VALUE);
  assert.ok(process.pValue >= 0 && process.pValue < 1e-300);
  const calm = new EProcess({ rate: 0.05 });
  for (let i = 0; i < 2000; i++) calm.observe(0.04);
  assert.ok(calm.value < 1 && calm.value >= 0);
  assert.ok(Math.abs(calm.observedRate! - 0.04) < 1e-12);
});

test("a baseline's order statistic is exceeded no more often than the bound, as often as it says", () => {
  const random = new Random(64);
  const rounds = 2000;
  const bound = exceedanceRateBound({ count: 500, rank: 495 }, 0.95);
  assert.ok(bound > 0.01);
  let held = 0;
  for (let round = 0; round < rounds; round++) {
    const sorted = Float64Array.from({ length: 500 }, () => random.uniform()).sort();
    if (1 - sorted[494]! <= bound) held++;
  }
  assert.ok(Math.abs(held / rounds - 0.95) < 0.015, String(held));
});
