import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { FinishedRequest, RequestEvidence } from "@octavo/engine";
import { plainServingRecord } from "@octavo/engine/testing";
import { FakeLanguageModel } from "../testing/fake-language-model.js";
import { requestUsage, servingFacts } from "./serving-facts.js";

const usage = { promptTokens: 10, completionTokens: 4, cachedTokens: 2 };
const gaps = { count: 20, meanMs: 12, p50Ms: 10, p99Ms: 30, maxMs: 45 };

function finished(requestId: string, record: Partial<FinishedRequest["record"]>): FinishedRequest {
  return {
    requestId,
    tenant: "default",
    lane: 0,
    reasons: ["stop"],
    usage,
    record: { ...plainServingRecord, ...record },
    n: 1,
    maxTokens: undefined,
  };
}

/** An engine that explains everything, and the ids that it was asked to explain. */
function identity() {
  const { engine } = new FakeLanguageModel();
  const asked: string[] = [];
  const evidenceOf = (requestId: string): RequestEvidence => {
    asked.push(requestId);
    const burst = {
      cause: "prefill_burst" as const,
      ms: 35,
      requests: [{ requestId: "other", tenant: "default", ms: 35, tokens: 900 }],
    };
    return {
      requestId,
      tenant: "default",
      isOver: true,
      record: { ...plainServingRecord, readerLagMs: 3 },
      firstToken: { ms: 60, cause: "queue", parts: [{ cause: "queue", ms: 60 }] },
      slowGaps: [
        { ms: 45, usualMs: 10, cause: "prefill_burst", parts: [burst], sequence: 0, output: 3, step: 9 },
      ],
    };
  };
  Object.defineProperty(engine, "evidence", {
    value: { steps: [], step: () => undefined, request: evidenceOf },
  });
  return { asked, engine, engineVersion: "1", quantization: undefined, replicaId: "r1" };
}

describe("what a span says of the serving", () => {
  it("names the cause of a slow gap and who had the greatest hand in it", () => {
    const exchange = { requestId: "x", computeMs: 7 };
    const facts = servingFacts([finished("a", { gaps })], identity(), exchange);
    assert.deepEqual(facts.slowestGap, { ms: 45, usualMs: 10, cause: "prefill_burst", culprit: "other" });
    assert.equal(facts.firstTokenCause, "queue");
    assert.equal(facts.kernelMs, 7);
    assert.equal(facts.readerLagMs, 3);
  });

  it("does not have explained what is not slow", () => {
    for (const record of [
      {},
      { timeToFirstTokenMs: 49 },
      { gaps: { ...gaps, maxMs: 19, p50Ms: 1 } },
      { gaps: { ...gaps, maxMs: 45, p50Ms: 30 } },
    ]) {
      const engine = identity();
      assert.equal(servingFacts([finished("a", record)], engine).slowestGap, undefined);
      assert.deepEqual(engine.asked, []);
    }
    const engine = identity();
    servingFacts([finished("a", { timeToFirstTokenMs: 50 })], engine);
    assert.deepEqual(engine.asked, ["a"]);
  });

  it("of several requests of the engine takes the times of the slowest and the tokens of all", () => {
    const requests = [finished("a", { e2eMs: 5 }), finished("b", { e2eMs: 9, queueMs: 4 })];
    assert.equal(servingFacts(requests, identity()).queueMs, 4);
    assert.deepEqual(requestUsage(requests), { inputTokens: 20, outputTokens: 8, cacheReadInputTokens: 4 });
    assert.deepEqual(requestUsage([]), {});
    assert.equal(servingFacts([], identity()).queueMs, undefined);
  });

  it("counts draft tokens and accepted ones over all requests", () => {
    const requests = [
      finished("a", { draftTokens: 8, acceptedDraftTokens: 5, e2eMs: 9 }),
      finished("b", { draftTokens: 4, acceptedDraftTokens: 0 }),
    ];
    const { draftTokens, acceptedDraftTokens } = servingFacts(requests, identity());
    assert.deepEqual([draftTokens, acceptedDraftTokens], [12, 5]);
    assert.equal(servingFacts([], identity()).draftTokens, undefined);
  });
});
