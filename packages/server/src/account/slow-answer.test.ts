import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type FinishedRequest, LLM, type RequestEvidence } from "@octavo/engine";
import { plainServingRecord } from "@octavo/engine/testing";
import { pino } from "pino";
import { createServer } from "../create-server.js";
import { FakeLanguageModel } from "../testing/fake-language-model.js";
import { octavoMiniPath } from "../testing/octavo-mini.js";
import { slowAnswer } from "./slow-answer.js";

function finished(record: Partial<FinishedRequest["record"]>): FinishedRequest {
  return {
    requestId: "a",
    tenant: "default",
    lane: 0,
    reasons: ["stop"],
    usage: { promptTokens: 10, completionTokens: 4, cachedTokens: 2 },
    record: { ...plainServingRecord, ...record },
    n: 1,
    maxTokens: undefined,
  };
}

function engineThatSays(evidence: Pick<RequestEvidence, "firstToken" | "slowGaps">) {
  const { engine } = new FakeLanguageModel();
  const request = (requestId: string): RequestEvidence => ({
    requestId,
    tenant: "default",
    isOver: true,
    record: plainServingRecord,
    ...evidence,
  });
  return { evidence: { ...engine.evidence, request } };
}

const burst = { requestId: "b", tenant: "acme", ms: 35, tokens: 900 };
const gap = {
  ms: 45.04,
  usualMs: 10,
  cause: "prefill_burst" as const,
  parts: [{ cause: "prefill_burst" as const, ms: 35, requests: [burst] }],
  sequence: 0,
  output: 3,
  step: 9,
};

describe("why an answer was slow, in the log", () => {
  it("names the cause and the culprit of the slowest gap, and of a late first token", () => {
    const parts = [{ cause: "queue" as const, ms: 60, requests: [burst] }];
    const engine = engineThatSays({ firstToken: { ms: 61, cause: "queue", parts }, slowGaps: [gap] });
    assert.deepEqual(slowAnswer(engine, finished({ timeToFirstTokenMs: 61 })), {
      engineRequestId: "a",
      firstToken: { ms: 61, cause: "queue", culprit: { requestId: "b", tenant: "acme" } },
      gap: {
        ms: 45,
        usualMs: 10,
        cause: "prefill_burst",
        culprit: { requestId: "b", tenant: "acme" },
      },
    });
  });

  it("is absent for fast answers, and has no culprit if there is none", () => {
    const firstToken = { ms: 61, cause: "prefill" as const, parts: [{ cause: "prefill" as const, ms: 61 }] };
    const engine = engineThatSays({ firstToken, slowGaps: [] });
    assert.equal(slowAnswer(engine, undefined), undefined);
    assert.equal(slowAnswer(engine, finished({ timeToFirstTokenMs: 49 })), undefined);
    assert.deepEqual(slowAnswer(engine, finished({ timeToFirstTokenMs: 61 })), {
      engineRequestId: "a",
      firstToken: { ms: 61, cause: "prefill" },
    });
  });

  it("is logged for a request that waited behind another one, and names it", async () => {
    const lines: Readonly<Record<string, unknown>>[] = [];
    const write = (line: string): void => void lines.push(JSON.parse(line) as (typeof lines)[number]);
    await using llm = await LLM.load(octavoMiniPath, {
      maxModelLen: 512,
      maxNumSeqs: 1,
      enableFaultInjection: true,
    });
    llm.engine.faults?.add({ kind: "delay", delayMs: 10 });
    await using server = createServer({
      model: llm,
      config: { port: 0, enableFaultInjection: true },
      logger: pino({ level: "info" }, { write }),
    });
    const { url } = await server.listen();
    const complete = async (tenant: string, tokens: number): Promise<string | null> => {
      const response = await fetch(`${url}/v1/completions`, {
        method: "POST",
        headers: { "content-type": "application/json", "x-tenant-id": tenant },
        body: JSON.stringify({ prompt: "Once", max_tokens: tokens, ignore_eos: true }),
      });
      await response.text();
      return response.headers.get("x-octavo-request-id");
    };
    const first = complete("first", 40);
    while (llm.engine.stats.running === 0) await new Promise((resolve) => setImmediate(resolve));
    const [ahead, behind] = await Promise.all([first, complete("second", 2)]);
    await server.drain(1000);
    const line = lines.find(({ msg, tenant }) => msg === "request" && tenant === "second");
    const { slow } = line as { slow?: ReturnType<typeof slowAnswer> };
    assert.equal(slow?.engineRequestId, behind);
    assert.equal(slow?.firstToken?.cause, "queue");
    assert.deepEqual(slow.firstToken.culprit, { requestId: ahead, tenant: "first" });
  });
});
