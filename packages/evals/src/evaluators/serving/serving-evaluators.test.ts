import assert from "node:assert/strict";
import test from "node:test";
import type { Sample } from "../evaluator.js";
import { sampleOf, valueOf } from "../testing/sample.js";
import { servingEvaluators } from "./serving-evaluators.js";

function served(parts: Partial<Sample["answer"]>): Sample {
  const sample = sampleOf({ output: "text" });
  return { ...sample, answer: { ...sample.answer, ...parts } };
}

test("time counts from when an answer was due", async () => {
  const sample = served({
    timing: { scheduledEpochMs: 1000, sentEpochMs: 1300, durationMs: 500, pieceMs: [200, 400] },
  });
  const of = (name: string, maxMs: number) =>
    valueOf(servingEvaluators, { name, options: { maxMs } }, sample);
  assert.deepEqual([await of("latency_below", 800), await of("latency_below", 799)], [1, 0]);
  assert.deepEqual([await of("first_token_below", 500), await of("first_token_below", 499)], [1, 0]);
  const whole = { name: "first_token_below", options: { maxMs: 1 } };
  assert.equal(await valueOf(servingEvaluators, whole, served({})), "skipped");
});

test("lengths and ends are as the server tells them, or skipped", async () => {
  const tokens = { name: "completion_tokens_below", options: { maxTokens: 10 } };
  const usage = (completionTokens: number | undefined) => ({
    usage: { promptTokens: 1, completionTokens, cachedTokens: undefined },
  });
  assert.equal(await valueOf(servingEvaluators, tokens, served(usage(10))), 1);
  assert.equal(await valueOf(servingEvaluators, tokens, served(usage(11))), 0);
  assert.equal(await valueOf(servingEvaluators, tokens, served(usage(undefined))), "skipped");
  assert.equal(await valueOf(servingEvaluators, "not_truncated", served({ finishReason: "length" })), 0);
  assert.equal(await valueOf(servingEvaluators, "not_truncated", served({ finishReason: "stop" })), 1);
  assert.equal(
    await valueOf(servingEvaluators, "not_truncated", served({ finishReason: undefined })),
    "skipped",
  );
});
