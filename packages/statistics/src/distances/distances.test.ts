import assert from "node:assert/strict";
import { test } from "node:test";
import { Random } from "../random.js";
import { wasserstein, wassersteinOfCounts } from "./distances.js";

test("counted samples are as far apart as the samples themselves", () => {
  const random = new Random(1);
  for (let round = 0; round < 50; round++) {
    const values = [0, 1, 4, 4.5, 10];
    const counts = () => values.map(() => random.integer(0, 5) + 1);
    const [first, second] = [counts(), counts()];
    const listed = (own: readonly number[]) =>
      values.flatMap((value, index) => Array.from({ length: own[index]! }, () => value));
    const expected = wasserstein(listed(first), listed(second));
    assert.ok(Math.abs(wassersteinOfCounts(values, first, second) - expected) < 1e-12);
  }
  assert.equal(wassersteinOfCounts([3], [1], [9]), 0);
});

test("refuses values that do not rise, and lists of unequal length", () => {
  const refused = { code: "invalid_option" };
  assert.throws(() => wassersteinOfCounts([1, 1], [1, 1], [1, 1]), refused);
  assert.throws(() => wassersteinOfCounts([1, 2], [1], [1]), refused);
});
