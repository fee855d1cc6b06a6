import assert from "node:assert/strict";
import test from "node:test";
import { Random } from "./random.js";

const draw = (count: number, next: () => number) => Array.from({ length: count }, next);
const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
const variance = (values: readonly number[]) => mean(values.map((value) => (value - mean(values)) ** 2));

test("the same seed gives the same stream, another seed another", () => {
  const stream = (seed: number) => {
    const random = new Random(seed);
    return draw(5, () => random.uniform());
  };
  assert.deepEqual(stream(1), stream(1));
  assert.notDeepEqual(stream(1), stream(2));
});

for (const [shape, scale] of [
  [0.4, 2],
  [1, 3],
  [5, 0.5],
] as const) {
  test(`gamma(${shape}, ${scale}) has its mean and variance`, () => {
    const random = new Random(7);
    const values = draw(20_000, () => random.gamma(shape, scale));
    assert.ok(values.every((value) => value >= 0));
    assert.ok(Math.abs(mean(values) / (shape * scale) - 1) < 0.05, String(mean(values)));
    assert.ok(Math.abs(variance(values) / (shape * scale * scale) - 1) < 0.15, String(variance(values)));
  });
}

test("integers cover their range evenly", () => {
  const random = new Random(5);
  const counts = [0, 0, 0];
  for (let i = 0; i < 3000; i++) {
    const value = random.integer(4, 6);
    counts[value - 4] = (counts[value - 4] ?? 0) + 1;
  }
  assert.ok(
    counts.every((count) => count > 900 && count < 1100),
    counts.join(),
  );
});
