import assert from "node:assert/strict";
import test from "node:test";
import * as fc from "fast-check";
import { divergence } from "./divergence.js";

const near = (actual: number, expected: number, within = 1e-6): void =>
  assert.ok(Math.abs(actual - expected) <= within, `${actual} instead of ${expected}`);
const logs = (...probabilities: number[]) => Float32Array.from(probabilities, Math.log);

test("known distributions: KL(baseline || variant), losses, choices", () => {
  // p = (1/2, 1/4, 1/4), q = (1/4, 1/2, 1/4): KL = 1/2 log 2 - 1/4 log 2 = log(2) / 4.
  const one = divergence(logs(0.5, 0.25, 0.25), logs(0.25, 0.5, 0.25), 2);
  near(one.kl, Math.LN2 / 4);
  near(one.baselineLoss, Math.log(4));
  near(one.variantLoss, Math.log(4));
  assert.equal(one.baselineTop, 0);
  assert.equal(one.variantTop, 1);
  near(one.baselineTopProbability, 0.5);
  assert.equal(one.isIdentical, false);
  // The direction matters: p = (0.9, 0.1), q = (0.5, 0.5).
  near(divergence(logs(0.9, 0.1), logs(0.5, 0.5), 0).kl, 0.9 * Math.log(1.8) + 0.1 * Math.log(0.2));
  near(divergence(logs(0.5, 0.5), logs(0.9, 0.1), 0).kl, 0.5 * Math.log(5 / 9) + 0.5 * Math.log(5));
});

test("a constant added to all logits changes nothing but the bits", () => {
  const shifted = divergence(Float32Array.of(1, 2, 3), Float32Array.of(11, 12, 13), 1);
  near(shifted.kl, 0, 1e-12);
  assert.equal(shifted.isIdentical, false);
});

test("equal logits diverge by exactly 0, large ones do not overflow, ties go to the lowest id", () => {
  const logits = Float32Array.of(300, -300, 300, 12.5);
  const same = divergence(logits, logits.slice(), 3);
  assert.equal(same.kl, 0);
  assert.equal(same.isIdentical, true);
  assert.equal(same.baselineTop, 0);
  assert.ok(Number.isFinite(same.baselineLoss));
});

test("never negative, and what summing log ratios gives", () => {
  const logits = fc.array(fc.float({ min: -30, max: 30, noNaN: true }), { minLength: 4, maxLength: 4 });
  fc.assert(
    fc.property(logits, logits, (a, b) => {
      const { kl } = divergence(Float32Array.from(a), Float32Array.from(b), 0);
      const norm = (values: number[]) => Math.log(values.reduce((sum, value) => sum + Math.exp(value), 0));
      const direct = a.reduce(
        (sum, value, i) => sum + Math.exp(value - norm(a)) * (value - norm(a) - b[i]! + norm(b)),
        0,
      );
      assert.ok(kl >= 0);
      near(kl, Math.max(0, direct), 1e-9);
    }),
    { seed: 5, numRuns: 300 },
  );
});
