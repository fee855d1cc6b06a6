import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Random } from "@octavo/statistics";
import { mostByChance } from "../testing/simulate.js";
import { levelFor, quantileRatio, requestsForTail, type TimeBlock } from "./quantile-ratio.js";
import { consecutive } from "./time-blocks.js";

const options = { level: 0.9, resamples: 400, seed: 1, isPaired: false };

/** Values of which neighbours depend on each other, half of their spread shared by both conditions. */
function dependent(seed: number, count: number, numBlocks: number): readonly TimeBlock[] {
  const random = new Random(seed);
  const series = () => {
    let state = random.normal();
    return Array.from({ length: count }, () => (state = 0.6 * state + 0.8 * random.normal()));
  };
  const [own, other, shared] = [series(), series(), series()];
  const value = (index: number, side: readonly number[]) => Math.exp(0.4 * (side[index]! + shared[index]!));
  const indices = consecutive([...own.keys()], numBlocks);
  return indices.map((block) => ({
    reference: block.map((index) => value(index, own)),
    observed: block.map((index) => value(index, other)),
  }));
}

describe("ratio of quantiles", () => {
  it("is that of the smallest values which reach the level", () => {
    const blocks = Array.from({ length: 10 }, (_, index) => ({
      reference: [index + 1],
      observed: [10 * (index + 1)],
    }));
    const ratio = quantileRatio(blocks, options);
    assert.equal(ratio?.reference, 9);
    assert.equal(ratio?.observed, 90);
    assert.equal(ratio?.estimate, 10);
  });

  it("has no interval from fewer than 8 stretches, and none at all of nothing or of zeros", () => {
    const block = { reference: [1, 2], observed: [2, 4] };
    const few = quantileRatio([block, block], options);
    assert.equal(few?.estimate, 2);
    assert.equal(few?.intervalAt(0.95), undefined);
    assert.equal(few?.pValueBeyond(1), undefined);
    assert.equal(quantileRatio([], options), undefined);
    assert.equal(quantileRatio([{ reference: [], observed: [1] }], options), undefined);
    assert.equal(quantileRatio([{ reference: [0], observed: [1] }], options), undefined);
  });

  it("is certain of what never varies, and its p value agrees with its interval", () => {
    const block = { reference: [1, 1], observed: [3, 3] };
    const ratio = quantileRatio(
      Array.from({ length: 10 }, () => block),
      options,
    );
    const ends = ratio?.intervalAt(0.95) ?? [0, 0];
    assert.ok(ends.every((end) => Math.abs(end - 3) < 1e-12));
    assert.ok((ratio?.pValueBeyond(2.9) ?? 1) < 1e-9);
    assert.equal(ratio?.pValueBeyond(3.1), 1);
    for (let seed = 0; seed < 20; seed++) {
      const seen = quantileRatio(dependent(seed, 200, 20), { ...options, isPaired: true });
      const [low] = seen?.intervalAt(0.95) ?? [1, 1];
      assert.ok((seen?.pValueBeyond(0.99 * low) ?? 1) <= 0.055);
      assert.ok((seen?.pValueBeyond(1.01 * low) ?? 0) >= 0.045);
    }
  });

  it("covers the truth as often as it says, though neighbours depend on each other", () => {
    for (const [level, count] of [
      [0.99, 400],
      [0.9, 60],
    ] as const) {
      let above = 0;
      let below = 0;
      for (let seed = 0; seed < 400; seed++) {
        const ratio = quantileRatio(dependent(seed, count, 20), { ...options, level, isPaired: true });
        const [low, high] = ratio?.intervalAt(0.95) ?? [1, 1];
        above += Number(low > 1);
        below += Number(high < 1);
      }
      assert.ok(above <= mostByChance(400, 0.035), `p${100 * level}: ${above} of 400 above`);
      assert.ok(below <= mostByChance(400, 0.035), `p${100 * level}: ${below} of 400 below`);
    }
  });

  it("says which percentile so many requests can bound", () => {
    assert.equal(requestsForTail(0.99, 0.05), 368);
    assert.equal(requestsForTail(0.9, 0.05), 36);
    assert.deepEqual(
      [368, 367, 36, 35].map((count) => levelFor(count, 0.05)),
      [0.99, 0.9, 0.9, undefined],
    );
  });
});
