import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { OctavoError } from "@octavo/protocol";
import { startCollector } from "../testing/mock-collector.js";
import { EvaluationExporter, type EvaluationExporterOptions } from "./evaluation-exporter.js";
import type { EvaluationResult } from "./evaluation-result.js";

const resource = { "service.name": "test" };
const result: EvaluationResult = {
  name: "groundedness",
  epochMs: 1_700_000_000_000,
  scoreValue: 1,
  scoreLabel: "pass",
  explanation: "all of it is in the source",
  responseId: "chatcmpl-1",
  span: { traceId: "0af7651916cd43dd8448eb211c80319c", spanId: "b7ad6b7169203331" },
  attributes: { "octavo.case.id": "case-1" },
};

function exporterTo(endpoint: string, more: Partial<EvaluationExporterOptions> = {}): EvaluationExporter {
  return new EvaluationExporter({ endpoint, resource, retryDelayMs: 1, ...more });
}

describe("results of evaluations", () => {
  it("are events under the conventions' names, at the call that they are about", async () => {
    await using collector = await startCollector();
    const exporter = exporterTo(collector.url);
    exporter.add(result);
    exporter.add({ name: "toxicity", epochMs: 0, errorType: "judge_unavailable" });
    await exporter.close(5000);
    assert.deepEqual(collector.paths, ["/v1/logs"]);
    const [scored, failed] = collector.logs;
    assert.ok(scored !== undefined && failed !== undefined);
    assert.equal(scored.eventName, "gen_ai.evaluation.result");
    assert.equal(scored.timeUnixNano, "1700000000000000000");
    assert.equal(scored.traceId, "0af7651916cd43dd8448eb211c80319c");
    assert.equal(scored.spanId, "b7ad6b7169203331");
    assert.deepEqual(Object.fromEntries(scored.attributes.map(({ key, value }) => [key, value])), {
      "octavo.case.id": { stringValue: "case-1" },
      "gen_ai.evaluation.name": { stringValue: "groundedness" },
      "gen_ai.evaluation.score.label": { stringValue: "pass" },
      "gen_ai.evaluation.explanation": { stringValue: "all of it is in the source" },
      "gen_ai.response.id": { stringValue: "chatcmpl-1" },
      "gen_ai.evaluation.score.value": { doubleValue: 1 },
    });
    assert.equal(failed.traceId, undefined);
    assert.deepEqual(failed.attributes, [
      { key: "gen_ai.evaluation.name", value: { stringValue: "toxicity" } },
      { key: "error.type", value: { stringValue: "judge_unavailable" } },
    ]);
    assert.deepEqual(exporter.counts, { delivered: 2, droppedFull: 0, droppedFailed: 0, waiting: 0 });
  });

  it("go out in batches as they come, and again where the collector is busy", async () => {
    await using collector = await startCollector();
    collector.answer = (request) => (request === 0 ? { status: 503 } : request === 1 ? { hangUp: true } : {});
    const exporter = exporterTo(collector.url, { maxBatch: 10 });
    for (let index = 0; index < 25; index++) exporter.add(result);
    await exporter.close(5000);
    assert.equal(collector.logs.length, 25);
    assert.equal(exporter.counts.delivered, 25);
  });

  it("that are refused, rejected or too many are counted", async () => {
    await using collector = await startCollector();
    collector.answer = (request) =>
      request === 0 ? { status: 400 } : { body: { partialSuccess: { rejectedLogRecords: "2" } } };
    const exporter = exporterTo(collector.url, { maxBatch: 10, maxWaiting: 20 });
    for (let index = 0; index < 30; index++) exporter.add(result);
    await exporter.close(5000);
    assert.deepEqual(exporter.counts, { delivered: 8, droppedFull: 10, droppedFailed: 12, waiting: 0 });
    exporter.add(result);
    assert.equal(exporter.counts.droppedFull, 11, "nothing is taken after the end");
  });

  it(
    "do not keep a run waiting for a collector that wants to be left alone",
    { timeout: 10_000 },
    async () => {
      await using collector = await startCollector();
      collector.answer = () => ({ status: 429, headers: { "retry-after": "3600" } });
      const exporter = exporterTo(collector.url);
      exporter.add(result);
      await exporter.close(100);
      assert.deepEqual(exporter.counts, { delivered: 0, droppedFull: 0, droppedFailed: 1, waiting: 0 });
      assert.equal(collector.paths.length, 1);
    },
  );

  it("do not keep a run waiting for a collector that never answers", async () => {
    await using collector = await startCollector();
    collector.answer = () => ({ waitFor: new Promise(() => {}) });
    const exporter = exporterTo(collector.url, { timeoutMs: 60_000 });
    exporter.add(result);
    await exporter.close(20);
    assert.deepEqual(exporter.counts, { delivered: 0, droppedFull: 0, droppedFailed: 1, waiting: 0 });
  });

  it("refuse what is no address, by name", () => {
    assert.throws(
      () => exporterTo("localhost:4318"),
      (error) => error instanceof OctavoError && error.param === "otlpEndpoint",
    );
  });
});
