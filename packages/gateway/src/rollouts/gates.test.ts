import assert from "node:assert/strict";
import test from "node:test";
import { type ArmOutcome, gateDifference, type GateName, gateNames } from "./gates.js";

const good: ArmOutcome = {
  isAnswered: true,
  text: '{"a":1}',
  toolArguments: ['{"x":2}'],
  finishReason: "stop",
  durationMs: 1000,
};
const settings = { ratio: 1.5, ms: 1500, text: '"a"' };
const isValid = (value: unknown): boolean => (value as { a?: number }).a === 1;

/** For each gate, an answer that is worse by it. */
const worse: Record<GateName, Partial<ArmOutcome>> = {
  answered: { isAnswered: false },
  json_valid: { text: '{"a":1' },
  json_schema: { text: '{"a":2}' },
  tool_arguments: { toolArguments: ['{"x":2}', "{x"] },
  finished: { finishReason: "length" },
  not_empty: { text: " \n", toolArguments: [] },
  no_refusal: { text: "I’m sorry, but I can't help with that." },
  contains: { text: "{}" },
  latency: { durationMs: 1501 },
  within_ms: { durationMs: 1501 },
};

for (const check of gateNames) {
  test(`${check} tells the worse answer, treats arms alike, and no difference is 0`, () => {
    const difference = (primary: ArmOutcome, canary: ArmOutcome): number | undefined =>
      gateDifference({ ...settings, check }, primary, canary, isValid);
    const bad = { ...good, ...worse[check] };
    assert.equal(difference(good, bad), -1);
    assert.equal(difference(bad, good), 1);
    const isTime = check === "latency";
    assert.equal(difference(good, good), isTime ? 1 : 0);
    const silent = { ...good, isAnswered: false };
    assert.equal(difference(silent, silent), isTime ? undefined : 0);
    assert.equal(difference(good, silent), isTime ? undefined : -1);
  });
}

test("JSON values that are no objects are no tool arguments", () => {
  const numbers = { ...good, toolArguments: ["7"] };
  assert.equal(gateDifference({ ...settings, check: "tool_arguments" }, good, numbers), -1);
});
