import assert from "node:assert/strict";
import test from "node:test";
import type { ServingRecordInfo } from "@octavo/protocol";
import type { Answer } from "../../answers/answer.js";
import { observationFromAnswer } from "./from-answer.js";

const answer: Answer = {
  caseId: "a",
  target: "http://replica-1",
  model: "m",
  text: "Hello",
  reasoning: undefined,
  toolCalls: [{ id: "1", name: "weather", arguments: '{"city":"Rome"}' }],
  finishReason: "tool_calls",
  usage: { promptTokens: 40, completionTokens: 3, cachedTokens: 10 },
  timing: { scheduledEpochMs: 1000, sentEpochMs: 1500, durationMs: 100, pieceMs: [20, 30, 90] },
  serving: undefined,
  headers: {},
  failure: undefined,
};

test("times count from when a request was due", () => {
  const seen = observationFromAnswer(answer, { condition: "burst", tenant: "small" });
  assert.equal(seen.firstTokenMs, 520);
  assert.equal(seen.durationMs, 600);
  assert.deepEqual(seen.gapsMs, [10, 60]);
  assert.equal(seen.cacheHitRatio, 0.25);
  assert.equal(seen.tenant, "small");
  assert.equal(seen.replica, "http://replica-1");
  assert.equal(seen.output, 'Hello[["weather","{\\"city\\":\\"Rome\\"}"]]');
});

test("what a gateway says in headers is taken, what is no number is not", () => {
  const headers = {
    "x-octavo-replica": "r7",
    "x-octavo-queue-depth": "12",
    "x-octavo-replica-count": "many",
    "x-agentcc-fallback-used": "true",
    "x-tenant-id": "acme",
  };
  const seen = observationFromAnswer({ ...answer, headers }, { condition: "burst", tags: ["t"] });
  assert.equal(seen.replica, "r7");
  assert.equal(seen.queueDepth, 12);
  assert.equal(seen.replicaCount, undefined);
  assert.equal(seen.tenant, "acme");
  assert.deepEqual(seen.tags, ["t", "fallback"]);
});

test("slow gaps name the blamed requests, the greatest share first", () => {
  const request = (request_id: string, ms: number) => ({ request_id, tenant: "t", ms, tokens: 100 });
  const spread = { min: 0, mean: 2, max: 512 };
  const serving: ServingRecordInfo = {
    request_id: "r",
    tenant: "small",
    is_over: true,
    queue_depth_at_arrival: 4,
    queue_ms: 5,
    prefill_ms: 1,
    decode_ms: 1,
    e2e_ms: 7,
    kernel_ms: 1,
    reader_lag_ms: 0,
    gaps: { count: 2, mean_ms: 35, p50_ms: 10, p99_ms: 60, max_ms: 60 },
    num_steps: 3,
    batch_size: spread,
    shared_prefill_tokens: spread,
    cached_tokens: 10,
    cache_hit_ratio: 0.5,
    evicted_prefix_tokens: 0,
    blocks_hit: 0,
    blocks_allocated: 0,
    blocks_evicted: 0,
    preemptions: 1,
    recomputed_tokens: 16,
    draft_tokens: 0,
    accepted_draft_tokens: 0,
    slow_gaps: [
      {
        ms: 60,
        cause: "prefill_burst",
        sequence: 0,
        output: 2,
        step: 9,
        usual_ms: 10,
        parts: [
          { cause: "decode", ms: 10 },
          { cause: "prefill_burst", ms: 50, tokens: 400, requests: [request("x", 10), request("y", 40)] },
        ],
      },
    ],
  };
  const seen = observationFromAnswer({ ...answer, serving }, { condition: "burst" });
  assert.deepEqual(seen.slowGaps, [
    { output: 2, ms: 60, usualMs: 10, cause: "prefill_burst", prefillTokens: 400, culprits: ["y", "x"] },
  ]);
  assert.equal(seen.prefillTokensInBatch, 512);
  assert.equal(seen.cacheHitRatio, 0.5);
  assert.equal(seen.preemptions, 1);
});
