import assert from "node:assert/strict";
import test from "node:test";
import {
  agreementTable,
  detectableDifference,
  mean,
  midranks,
  nonInferiority,
  pairsForDifference,
  quantile,
  quantileBound,
  quantileInterval,
  requestsForQuantileBound,
  tailMean,
} from "./index.js";

test("a margin is held against both ends of an interval", () => {
  const verdict = (low: number, high: number, worse?: "lower" | "higher") =>
    nonInferiority({ interval: [low, high], margin: 0.02, ...(worse && { worse }) }).verdict;
  assert.equal(verdict(-0.019, 0.05), "pass");
  assert.equal(verdict(-0.02, 0.05), "inconclusive");
  assert.equal(verdict(-0.05, -0.02), "inconclusive");
  assert.equal(verdict(-0.05, -0.021), "fail");
  assert.equal(verdict(0.5, 0.6), "pass");
  assert.equal(verdict(-0.5, 0.019, "higher"), "pass");
  assert.equal(verdict(0.021, 0.5, "higher"), "fail");
  assert.equal(nonInferiority({ interval: undefined, margin: 0.02 }).verdict, "inconclusive");
});

test("sample sizes that are quoted elsewhere", () => {
  // 200 pairs find 4.3, 6.1 and 8.7 points at 5, 10 and 20 % discordance.
  const points = [0.05, 0.1, 0.2].map((discordance) => detectableDifference({ pairs: 200, discordance }));
  assert.deepEqual(
    points.map((value) => (100 * value).toFixed(1)),
    ["4.3", "6.1", "8.7"],
  );
  assert.equal(pairsForDifference({ discordance: 0.1, difference: 0.02 }), 1955);
  assert.equal(requestsForQuantileBound(0.99, 0.975), 368);
});

test("planning inverts itself", () => {
  for (const discordance of [0.03, 0.1, 0.4]) {
    for (const pairs of [50, 400, 5000]) {
      const difference = detectableDifference({ pairs, discordance });
      if (difference > discordance) continue;
      assert.ok(Math.abs(pairsForDifference({ discordance, difference }) - pairs) <= 1);
    }
  }
});

test("quantiles are observations, and bounds need enough of them", () => {
  const values = Array.from({ length: 100 }, (_, index) => 100 - index);
  assert.deepEqual(
    [0, 0.01, 0.011, 0.5, 0.95, 0.99, 1].map((level) => quantile(values, level)),
    [1, 1, 2, 50, 95, 99, 100],
  );
  assert.equal(quantileInterval(values, 0.99), undefined);
  const enough = Array.from({ length: 368 }, (_, index) => index);
  assert.equal(quantileBound(enough, 0.99, 0.975), 367);
  assert.equal(quantileBound(enough.slice(1), 0.99, 0.975), undefined);
  assert.equal(quantileBound(enough, 0.01, 0.025), 0);
  assert.equal(tailMean(values, 0.99), 100);
});

test("ranks and tables", () => {
  assert.deepEqual([...midranks([3, 1, 3, 2]).ranks], [3.5, 1, 3.5, 2]);
  assert.deepEqual(midranks([3, 1, 3, 2]).ties, [2]);
  assert.deepEqual(agreementTable(["pass", "fail", "pass"], ["pass", "pass", "pass"]), {
    labels: ["fail", "pass"],
    counts: [
      [0, 1],
      [0, 2],
    ],
  });
  // Ten thousand tenths: plain summation would be off in the 13th digit.
  assert.ok(Math.abs(mean(Array.from({ length: 10_000 }, () => 0.1)) - 0.1) < 1e-15);
});
