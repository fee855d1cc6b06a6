import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { OctavoError } from "@octavo/protocol";
import { bareSpan, fullSpan } from "../testing/example-spans.js";
import { startCollector } from "../testing/mock-collector.js";
import { signalAddress } from "./otlp-address.js";
import { OtlpExporter, type OtlpExporterOptions } from "./otlp-exporter.js";

function exporterTo(endpoint: string, options: Partial<OtlpExporterOptions> = {}): OtlpExporter {
  return new OtlpExporter({
    endpoint,
    resource: { "service.name": "test" },
    conventions: ["opentelemetry"],
    retryDelayMs: 1,
    ...options,
  });
}

describe("the OTLP exporter", () => {
  it("delivers spans as OTLP's JSON", async () => {
    await using collector = await startCollector();
    const exporter = exporterTo(collector.url, { headers: { "x-key": "k" } });
    exporter.add(fullSpan);
    exporter.add({ ...bareSpan, outcome: { kind: "error", errorType: "queue_full", message: "full" } });
    await exporter.close(5000);
    assert.deepEqual(exporter.counts, { delivered: 2, droppedFull: 0, droppedFailed: 0, waiting: 0 });
    assert.deepEqual(collector.paths, ["/v1/traces"]);
    assert.equal(collector.headers[0]?.["x-key"], "k");
    assert.deepEqual(collector.resources, [
      { attributes: [{ key: "service.name", value: { stringValue: "test" } }] },
    ]);
    const [span, failed] = collector.spans;
    assert.ok(span !== undefined && failed !== undefined);
    const { attributes, ...rest } = span;
    assert.deepEqual(rest, {
      traceId: "0af7651916cd43dd8448eb211c80319c",
      spanId: "b7ad6b7169203331",
      parentSpanId: "00f067aa0ba902b7",
      traceState: "vendor=1",
      flags: 1,
      name: "chat octavo-mini",
      kind: 2,
      startTimeUnixNano: "1700000000000250000",
      endTimeUnixNano: "1700000001500250000",
      status: {},
    });
    const values = new Map(attributes.map(({ key, value }) => [key, value]));
    assert.deepEqual(values.get("gen_ai.usage.input_tokens"), { intValue: "100" });
    assert.deepEqual(values.get("gen_ai.request.temperature"), { doubleValue: 0.5 });
    assert.deepEqual(values.get("gen_ai.request.stream"), { boolValue: true });
    assert.deepEqual(values.get("gen_ai.response.finish_reasons"), {
      arrayValue: { values: [{ stringValue: "tool_calls" }] },
    });
    assert.equal(failed.kind, 3);
    assert.equal(failed.parentSpanId, undefined);
    assert.deepEqual(failed.status, { code: 2, message: "full" });
  });

  it("sends full batches at once and the rest on a flush", async () => {
    await using collector = await startCollector();
    const exporter = exporterTo(collector.url, { maxBatch: 100, maxDelayMs: 1e9 });
    for (let index = 0; index < 250; index++) exporter.add(bareSpan);
    await exporter.flush(5000);
    assert.equal(collector.spans.length, 250);
    assert.equal(collector.paths.length, 3);
    await exporter.close(1000);
  });

  it("tries again where the collector asks for it, and loses nothing", async () => {
    await using collector = await startCollector();
    collector.answer = (request) =>
      request === 0
        ? { status: 503, headers: { "retry-after": "0" } }
        : request === 1
          ? { hangUp: true }
          : {};
    const exporter = exporterTo(collector.url);
    exporter.add(bareSpan);
    await exporter.close(5000);
    assert.equal(collector.spans.length, 1);
    assert.deepEqual(exporter.counts, { delivered: 1, droppedFull: 0, droppedFailed: 0, waiting: 0 });
  });

  it("gives up at once on a refusal, and counts rejected spans", async () => {
    await using collector = await startCollector();
    const problems: string[] = [];
    collector.answer = (request) =>
      request === 0 ? { status: 400 } : { body: { partialSuccess: { rejectedSpans: "2" } } };
    const exporter = exporterTo(collector.url, { onProblem: (message) => problems.push(message) });
    exporter.add(bareSpan);
    await exporter.flush(5000);
    assert.equal(exporter.counts.droppedFailed, 1);
    for (let index = 0; index < 3; index++) exporter.add(bareSpan);
    await exporter.close(5000);
    assert.deepEqual(exporter.counts, { delivered: 1, droppedFull: 0, droppedFailed: 3, waiting: 0 });
    assert.equal(problems.length, 1, "problems are reported once a minute");
    assert.match(problems[0] ?? "", /answered 400/);
  });

  it("keeps a bounded amount while the collector is down, and counts what it drops", async () => {
    const exporter = exporterTo("http://127.0.0.1:9", { maxWaiting: 50, maxBatch: 20, retryDelayMs: 1e9 });
    for (let index = 0; index < 1000; index++) exporter.add(bareSpan);
    assert.equal(exporter.counts.droppedFull, 950);
    assert.equal(exporter.counts.waiting, 50);
    await exporter.close(20);
    const { delivered, droppedFull, droppedFailed, waiting } = exporter.counts;
    assert.deepEqual([delivered, droppedFull + droppedFailed, waiting], [0, 1000, 0]);
    exporter.add(bareSpan);
    assert.equal(exporter.counts.droppedFull, 951);
  });

  it("does not wait for a collector that never answers", async () => {
    await using collector = await startCollector();
    let release = (): void => {};
    const waitFor = new Promise<void>((resolve) => {
      release = resolve;
    });
    collector.answer = () => ({ waitFor });
    const exporter = exporterTo(collector.url, { maxWaiting: 10, maxBatch: 5, timeoutMs: 60_000 });
    for (let index = 0; index < 30; index++) exporter.add(bareSpan);
    assert.equal(exporter.counts.droppedFull, 20);
    await exporter.flush(10);
    assert.equal(exporter.counts.waiting, 10, "nothing is lost by a flush that comes to its deadline");
    await exporter.close(10);
    assert.equal(exporter.counts.droppedFailed, 10);
    release();
  });

  it("ends an attempt at its time limit", async () => {
    await using collector = await startCollector();
    let release = (): void => {};
    const waitFor = new Promise<void>((resolve) => {
      release = resolve;
    });
    collector.answer = (request) => (request === 0 ? { waitFor } : {});
    const exporter = exporterTo(collector.url, { timeoutMs: 20 });
    exporter.add(bareSpan);
    await exporter.flush(30_000);
    release();
    assert.equal(exporter.counts.delivered, 1);
    await exporter.close(1000);
  });

  it("refuses what is no address, by name", () => {
    for (const endpoint of ["", "localhost:4317", "grpc://localhost:4317", "file:///etc/passwd"]) {
      assert.throws(
        () => exporterTo(endpoint),
        (error) => error instanceof OctavoError && error.param === "otlpEndpoint",
        endpoint,
      );
    }
  });

  it("cuts batches into bodies that collectors take, and keeps no more content than its bound", async () => {
    await using collector = await startCollector();
    const long = { ...fullSpan, context: { ...fullSpan.context, metadata: { text: "x".repeat(40_000) } } };
    const exporter = exporterTo(collector.url, {
      maxBatch: 100,
      maxDelayMs: 1e9,
      maxBodyCharacters: 100_000,
    });
    for (let index = 0; index < 7; index++) exporter.add(long);
    await exporter.close(5000);
    assert.equal(exporter.counts.delivered, 7);
    assert.equal(collector.paths.length, 4, "two spans in a body");
    const bounded = exporterTo("http://127.0.0.1:9", { maxWaitingCharacters: 10 });
    bounded.add(fullSpan);
    bounded.add(fullSpan);
    assert.equal(bounded.counts.droppedFull, 1);
    await bounded.close(1);
  });

  it("sends nothing that is no Unicode: one span would cost its whole batch", async () => {
    await using collector = await startCollector();
    const exporter = exporterTo(collector.url);
    exporter.add({
      ...bareSpan,
      request: { model: "a\ud83d" },
      context: { attributes: { "k\udc00": "v\ud83d!" } },
    });
    await exporter.close(5000);
    const [span] = collector.spans;
    assert.equal(span?.name, "chat a\ufffd");
    const own = span?.attributes.find(({ key }) => key === "k\ufffd");
    assert.deepEqual(own?.value, { stringValue: "v\ufffd!" });
  });

  it("adds the path of traces to base addresses alone", () => {
    assert.equal(signalAddress("http://c:4318", "traces"), "http://c:4318/v1/traces");
    assert.equal(signalAddress("http://c:4318/", "traces"), "http://c:4318/v1/traces");
    assert.equal(signalAddress("http://c:4318", "metrics"), "http://c:4318/v1/metrics");
    const full = "https://c/api/public/otel/v1/traces";
    assert.equal(signalAddress(full, "traces"), full);
  });
});
