import assert from "node:assert/strict";
import { test } from "node:test";
import type { StepRecord } from "@octavo/engine";
import { median } from "../../support/median.js";
import { PromptSource } from "./prompts.js";
import { fullSteps, numFullSteps } from "./steps.js";

const step = (startMs: number, decodeTokens: number, prefillTokens = 0): StepRecord => ({
  step: startMs,
  startMs,
  durationMs: 9,
  computeMs: 8,
  prefillMs: 0,
  numSequences: decodeTokens,
  prefillTokens,
  decodeTokens,
  blocksUsed: 0,
  blocksEvicted: 0,
  preemptions: 0,
});

test("counts the longest stretch in which all streams decode, without its first steps", () => {
  const steps = [
    step(0, 0, 64),
    step(50, 1, 32),
    step(90, 2),
    step(100, 1),
    ...[110, 120, 130, 140, 150, 160].map((at) => step(at, 2)),
    step(170, 1),
  ];
  assert.deepEqual(fullSteps(steps, 2, 100), { count: 3, wallMs: 30, computeMs: 24 });
  assert.deepEqual(fullSteps(steps, 2, 2), { count: 2, wallMs: 20, computeMs: 16 });
});

test("knows how many steps ran in full at the end", () => {
  assert.equal(numFullSteps([step(0, 2), step(1, 1), step(2, 2), step(3, 2)], 2), 2);
  assert.equal(numFullSteps([step(0, 2), step(1, 2)], 2), 2);
  assert.equal(numFullSteps([step(0, 1, 5)], 2), 0);
});

test("streams that never run together are an error", () => {
  assert.throws(() => fullSteps([step(0, 1), step(10, 2), step(20, 1)], 2, 4), { code: "internal_error" });
});

test("prompts are the same each time and below the control tokens", () => {
  const tokens = new PromptSource(64).next(1000);
  assert.deepEqual(tokens, new PromptSource(64).next(1000));
  assert.ok(tokens.every((token) => token >= 0 && token < 61));
});

test("median of even and odd counts", () => {
  assert.equal(median([3, 1, 2]), 2);
  assert.equal(median([4, 1, 2, 3]), 2.5);
});
