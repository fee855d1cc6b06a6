import assert from "node:assert/strict";
import test from "node:test";
import { seedSource, sequenceSeed } from "./seeds.js";

const take = (next: () => bigint, count: number): bigint[] => Array.from({ length: count }, () => next());

test("a seed gives the same seeds in the same order, none twice; without one they are by chance", () => {
  const seeds = take(seedSource(7), 100);
  assert.deepEqual(take(seedSource(7), 100), seeds);
  assert.equal(new Set([...seeds, ...take(seedSource(8), 100)]).size, 200);
  assert.notDeepEqual(take(seedSource(undefined), 4), take(seedSource(undefined), 4));
});

test("the first sequence keeps its request's seed, the others have their own", () => {
  assert.equal(sequenceSeed(5n, 0), 5n);
  // SplitMix64 of seed 0, from Vigna's splitmix64.c
  assert.equal(sequenceSeed(0n, 1), 0xe220a8397b1dcdafn);
});
