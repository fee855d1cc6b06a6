import assert from "node:assert/strict";
import { it } from "node:test";
import * as fc from "fast-check";
import { GapSketch } from "./gap-sketch.js";

it("knows count, mean and maximum exactly and percentiles within 1 %", () => {
  fc.assert(
    fc.property(fc.array(fc.double({ min: 0.001, max: 1e6, noNaN: true }), { minLength: 1 }), (gaps) => {
      const sketch = new GapSketch();
      for (const gap of gaps) sketch.add(gap);
      const summary = sketch.summary();
      const sorted = gaps.toSorted((left, right) => left - right);
      assert.equal(summary.count, gaps.length);
      assert.equal(summary.maxMs, sorted.at(-1));
      for (const [share, value] of [
        [0.5, summary.p50Ms],
        [0.99, summary.p99Ms],
      ] as const) {
        const exact = sorted[Math.ceil(share * gaps.length) - 1] ?? 0;
        assert.ok(Math.abs((value ?? 0) - exact) <= exact * 0.0101, `${value} is not ${exact}`);
      }
    }),
    { seed: 1, numRuns: 200 },
  );
});

it("has nothing to say of no gaps, and takes no nonsense", () => {
  const sketch = new GapSketch();
  for (const gap of [Number.NaN, -1, Number.POSITIVE_INFINITY]) sketch.add(gap);
  assert.deepEqual(sketch.summary(), {
    count: 0,
    meanMs: undefined,
    p50Ms: undefined,
    p99Ms: undefined,
    maxMs: undefined,
  });
  sketch.add(0);
  assert.equal(sketch.summary().p99Ms, 0);
});
