import assert from "node:assert/strict";
import test from "node:test";
import { decide, overallVerdict, type TestedEffect } from "./verdicts.js";

const effect = (name: string, pValue: number | undefined, isWithin = false): TestedEffect => ({
  name,
  method: "test",
  estimate: 1,
  interval: [0, 2],
  confidence: 0.95,
  margin: 1,
  unit: "ratio",
  pValue,
  isWithin,
});

test("p values are adjusted for how many were tested, not for those that could not be", () => {
  const [first, second, third] = decide([effect("a", 0.02), effect("b", 0.03), effect("c", undefined)], 0.05);
  assert.equal(first?.pValue, 0.04);
  assert.equal(first?.verdict, "fail");
  assert.equal(second?.verdict, "fail");
  assert.equal(third?.verdict, "inconclusive");
  assert.equal(decide([effect("a", 0.03), effect("b", 0.9)], 0.05)[0]?.verdict, "inconclusive");
});

test("one that fails fails all, and only all that pass pass", () => {
  const of = (...effects: TestedEffect[]) => overallVerdict(decide(effects, 0.05));
  assert.equal(of(effect("a", 0.9, true), effect("b", 0.001)), "fail");
  assert.equal(of(effect("a", 0.9, true), effect("b", 0.5)), "inconclusive");
  assert.equal(of(effect("a", 0.9, true), effect("b", 0.5, true)), "pass");
  assert.equal(of(), "inconclusive");
});
