import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { OctavoError } from "@octavo/protocol";
import {
  type MockCollector,
  type OtlpHistogramPointJson,
  startCollector,
} from "../testing/mock-collector.js";
import { HistogramSeries } from "./histogram-series.js";
import { OtlpMetricsExporter, type OtlpMetricsExporterOptions } from "./otlp-metrics-exporter.js";
import { type ServedCall, ServerMetrics } from "./server-metrics.js";

const call: ServedCall = {
  operation: "chat",
  provider: "octavo",
  requestModel: "mini",
  responseModel: "mini",
  server: { host: "127.0.0.1", port: 8000 },
  errorType: undefined,
  durationMs: 300,
  outputs: [{ timeToFirstTokenMs: 20, timePerOutputTokenMs: 12 }],
};
const startMs = 1_700_000_000_000;
const farMs = 2 ** 30;

function exporterTo(
  endpoint: string,
  metrics: ServerMetrics,
  options: Partial<OtlpMetricsExporterOptions> = {},
): OtlpMetricsExporter {
  const resource = { "service.name": "test" };
  return new OtlpMetricsExporter({ endpoint, metrics, resource, intervalMs: farMs, ...options });
}

function pointsOf(collector: MockCollector, name: string, body = -1): readonly OtlpHistogramPointJson[] {
  const metric = collector.metrics.at(body)?.find((each) => each.name === name);
  return metric?.histogram.dataPoints ?? [];
}

describe("the server's metrics over OTLP", () => {
  it("have the conventions' names, units, buckets and attributes", async () => {
    await using collector = await startCollector();
    const metrics = new ServerMetrics(startMs);
    const exporter = exporterTo(collector.url, metrics, { headers: { "x-key": "k" } });
    metrics.record(call);
    await exporter.close(5000);
    assert.deepEqual(collector.paths, ["/v1/metrics"]);
    assert.equal(collector.headers[0]?.["x-key"], "k");
    assert.deepEqual(collector.resources, [
      { attributes: [{ key: "service.name", value: { stringValue: "test" } }] },
    ]);
    const sent = collector.metrics[0]?.map(({ name, unit, histogram }) => [
      name,
      unit,
      histogram.aggregationTemporality,
      histogram.dataPoints[0]?.explicitBounds,
    ]);
    assert.deepEqual(sent, [
      [
        "gen_ai.server.request.duration",
        "s",
        2,
        [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92],
      ],
      [
        "gen_ai.server.time_per_output_token",
        "s",
        2,
        [0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5],
      ],
      [
        "gen_ai.server.time_to_first_token",
        "s",
        2,
        [0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10],
      ],
    ]);
    const [point] = pointsOf(collector, "gen_ai.server.time_to_first_token");
    assert.ok(point !== undefined);
    assert.deepEqual(point.attributes, [
      { key: "gen_ai.operation.name", value: { stringValue: "chat" } },
      { key: "gen_ai.provider.name", value: { stringValue: "octavo" } },
      { key: "gen_ai.request.model", value: { stringValue: "mini" } },
      { key: "gen_ai.response.model", value: { stringValue: "mini" } },
      { key: "server.address", value: { stringValue: "127.0.0.1" } },
      { key: "server.port", value: { intValue: "8000" } },
    ]);
    assert.equal(point.startTimeUnixNano, "1700000000000000000");
    assert.equal(point.count, "1");
    assert.equal(point.sum, 0.02);
    assert.deepEqual(point.bucketCounts, ["0", "0", "0", "1", ...Array.from({ length: 13 }, () => "0")]);
  });

  it("count failures by their code, in durations alone", async () => {
    await using collector = await startCollector();
    const metrics = new ServerMetrics(startMs);
    const exporter = exporterTo(collector.url, metrics);
    metrics.record(call);
    metrics.record({ ...call, errorType: "queue_full", durationMs: 100_000 });
    await exporter.close(5000);
    const [good, failed] = pointsOf(collector, "gen_ai.server.request.duration");
    assert.equal(good?.count, "1");
    assert.deepEqual(failed?.attributes.at(-1), { key: "error.type", value: { stringValue: "queue_full" } });
    assert.equal(failed?.bucketCounts.at(-1), "1", "beyond the last bound");
    assert.equal(pointsOf(collector, "gen_ai.server.time_to_first_token").length, 1);
    assert.equal(pointsOf(collector, "gen_ai.server.time_per_output_token")[0]?.count, "1");
  });

  it("are cumulative: what a failed export lost, the next one has", async () => {
    await using collector = await startCollector();
    const problems: string[] = [];
    collector.answer = (request) => (request === 0 ? { status: 503 } : {});
    const metrics = new ServerMetrics(startMs);
    const exporter = exporterTo(collector.url, metrics, { onProblem: (message) => problems.push(message) });
    metrics.record(call);
    await exporter.flush(5000);
    assert.equal(collector.metrics.length, 0);
    metrics.record(call);
    await exporter.flush(5000);
    assert.equal(pointsOf(collector, "gen_ai.server.request.duration")[0]?.count, "2");
    assert.deepEqual(exporter.counts, { delivered: 1, failed: 1, skipped: 0 });
    assert.match(problems.join(), /answered 503/);
    await exporter.close(1000);
  });

  it("go out again and again, one at a time, and nothing is sent before anything was counted", async () => {
    await using collector = await startCollector();
    let release = (): void => {};
    const waitFor = new Promise<void>((resolve) => {
      release = resolve;
    });
    collector.answer = () => ({ waitFor });
    const metrics = new ServerMetrics(startMs);
    const exporter = exporterTo(collector.url, metrics, { intervalMs: 1 });
    await exporter.flush(1000);
    assert.deepEqual(collector.paths, []);
    metrics.record(call);
    // timers of an exporter keep no process alive, so one of the test's does
    const alive = setInterval(() => {}, 1000);
    while (exporter.counts.skipped < 3) await new Promise((resolve) => setImmediate(resolve));
    clearInterval(alive);
    assert.equal(collector.paths.length, 1);
    release();
    await exporter.close(5000);
    assert.ok(exporter.counts.delivered >= 1);
  });

  it("say what a collector rejected, and do not wait for one that never answers", async () => {
    await using collector = await startCollector();
    collector.answer = () => ({ body: { partialSuccess: { rejectedDataPoints: "1" } } });
    const metrics = new ServerMetrics(startMs);
    metrics.record(call);
    const exporter = exporterTo(collector.url, metrics);
    await exporter.flush(5000);
    assert.equal(exporter.counts.failed, 1);
    collector.answer = () => ({ waitFor: new Promise(() => {}) });
    await exporter.close(20);
    assert.equal(exporter.counts.delivered, 0);
  });

  it("have a bounded number of attribute sets, and one for all beyond", () => {
    const series = new HistogramSeries({ name: "n", description: "d", bounds: [1] });
    for (let index = 0; index < 5000; index++) series.observe(0.5, { model: `m-${index}` });
    assert.equal(series.points.length, 2000);
    const beyond = series.points.at(-1);
    assert.deepEqual(beyond?.attributes, { "otel.metric.overflow": true });
    assert.equal(beyond?.count, 5000 - 1999);
    series.observe(1, { model: "m-0" });
    assert.deepEqual(series.points[0]?.bucketCounts, [2, 0], "a bound belongs to its bucket");
    series.observe(Number.NaN, { model: "m-0" });
    assert.equal(series.points[0]?.count, 2);
  });

  it("refuse what is no address, by name", () => {
    for (const endpoint of ["", "localhost:4317", "grpc://localhost:4317"]) {
      assert.throws(
        () => exporterTo(endpoint, new ServerMetrics(startMs)),
        (error) => error instanceof OctavoError && error.param === "otlpMetricsEndpoint",
        endpoint,
      );
    }
  });
});
