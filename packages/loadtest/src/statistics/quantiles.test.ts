import assert from "node:assert/strict";
import test from "node:test";
import { Random } from "@octavo/statistics";
import { proportion, summarize } from "./quantiles.js";

test("quantiles are observations, means are means", () => {
  const values = Array.from({ length: 100 }, (_, index) => [100 - index]);
  const summary = summarize(values);
  assert.ok(summary);
  assert.equal(summary.count, 100);
  assert.equal(summary.p50.value, 50);
  assert.equal(summary.p90.value, 90);
  assert.equal(summary.p99.value, 99);
  assert.equal(summary.max, 100);
  assert.equal(summary.mean.value, 50.5);
});

test("nothing measured is undefined, a handful has no interval", () => {
  assert.equal(summarize([]), undefined);
  assert.equal(summarize([[], []]), undefined);
  assert.equal(summarize([[1], [2], [3]])?.p50.interval, undefined);
});

test("the interval of a mean covers the truth about as often as it says", () => {
  const random = new Random(11);
  let covered = 0;
  const rounds = 200;
  for (let round = 0; round < rounds; round++) {
    const sample = Array.from({ length: 60 }, () => [random.exponential(10)]);
    const interval = summarize(sample, round)?.mean.interval;
    if (interval && interval[0] <= 10 && interval[1] >= 10) covered++;
  }
  assert.ok(covered >= 0.87 * rounds && covered <= rounds, `${covered} of ${rounds}`);
});

test("observations of one cluster are resampled together", () => {
  const random = new Random(3);
  const levels = Array.from({ length: 30 }, () => random.uniform() * 100);
  const together = levels.map((level) => Array.from({ length: 50 }, () => level));
  const apart = together.flat().map((value) => [value]);
  const width = (interval: readonly [number, number] | undefined) =>
    interval ? interval[1] - interval[0] : 0;
  assert.ok(width(summarize(together)?.mean.interval) > 3 * width(summarize(apart)?.mean.interval));
});

test("Wilson's interval stays within [0, 1] and holds the estimate", () => {
  assert.deepEqual(proportion(0, 0).interval, undefined);
  const all = proportion(20, 20);
  assert.equal(all.value, 1);
  assert.ok(all.interval && all.interval[0] > 0.8 && all.interval[1] === 1);
});
