import assert from "node:assert/strict";
import test from "node:test";
import * as fc from "fast-check";
import type { Interval } from "../estimate.js";
import type { PairedTable } from "../tests/paired-table.js";
import { pairedDifference } from "./paired-difference.js";
import { clopperPearson, newcombeDifference, wilsonInterval } from "./proportion.js";
import { tangoInterval } from "./tango.js";

const count = fc.oneof(fc.integer({ min: 0, max: 6 }), fc.integer({ min: 0, max: 300 }));
const proportion = fc
  .tuple(count, count)
  .filter(([a, b]) => a + b > 0)
  .map(([successes, failures]) => ({ successes, trials: successes + failures }));
const table = fc
  .record({ both: count, lost: count, gained: count, neither: count })
  .filter(({ both, lost, gained, neither }) => both + lost + gained + neither > 0);

const rounding = 1e-12;

/** Holds the estimate, lies in the range, and more confidence only widens it. */
function behaves(estimate: number, range: Interval, interval: (confidence: number) => Interval): void {
  let inner: Interval = [estimate, estimate];
  for (const confidence of [0.5, 0.8, 0.95, 0.99, 0.9999]) {
    const [low, high] = interval(confidence);
    assert.ok(low <= inner[0] + rounding && high >= inner[1] - rounding, `${confidence}: [${low}, ${high}]`);
    assert.ok(low >= range[0] && high <= range[1], `[${low}, ${high}]`);
    inner = [low, high];
  }
}

function mirrored([low, high]: Interval, [otherLow, otherHigh]: Interval): void {
  assert.ok(
    Math.abs(low + otherHigh) < 1e-9 && Math.abs(high + otherLow) < 1e-9,
    `[${low}, ${high}] and [${otherLow}, ${otherHigh}]`,
  );
}

const swapped = ({ both, lost, gained, neither }: PairedTable): PairedTable => ({
  both,
  lost: gained,
  gained: lost,
  neither,
});

const runs = { numRuns: 500, seed: 3 };

test("intervals of a proportion hold it and widen with confidence", () => {
  fc.assert(
    fc.property(proportion, ({ successes, trials }) => {
      const share = successes / trials;
      behaves(share, [0, 1], (confidence) => wilsonInterval(successes, trials, confidence));
      behaves(share, [0, 1], (confidence) => clopperPearson(successes, trials, confidence));
      const [low, high] = clopperPearson(successes, trials);
      const [otherLow, otherHigh] = clopperPearson(trials - successes, trials);
      assert.ok(Math.abs(low + otherHigh - 1) < 1e-9 && Math.abs(high + otherLow - 1) < 1e-9);
    }),
    runs,
  );
});

test("intervals of a difference hold it, widen with confidence and turn round with the sides", () => {
  fc.assert(
    fc.property(proportion, proportion, (first, second) => {
      const { estimate } = newcombeDifference(first, second);
      behaves(estimate, [-1, 1], (confidence) => newcombeDifference(first, second, confidence).interval);
      mirrored(newcombeDifference(first, second).interval, newcombeDifference(second, first).interval);
    }),
    runs,
  );
});

test("intervals of a paired difference hold it, widen with confidence and turn round with the sides", () => {
  fc.assert(
    fc.property(table, (pairs) => {
      const { estimate } = pairedDifference(pairs);
      behaves(estimate, [-1, 1], (confidence) => pairedDifference(pairs, confidence).interval);
      behaves(estimate, [-1, 1], (confidence) => tangoInterval(pairs, confidence));
      mirrored(pairedDifference(pairs).interval, pairedDifference(swapped(pairs)).interval);
      mirrored(tangoInterval(pairs), tangoInterval(swapped(pairs)));
    }),
    runs,
  );
});
