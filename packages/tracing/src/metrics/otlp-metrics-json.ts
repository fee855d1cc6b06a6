import { otlpAttributes, unixNano } from "../export/otlp-json.js";
import type { Attributes } from "../span/llm-span.js";
import type { HistogramSeries } from "./histogram-series.js";
import type { ServerMetrics } from "./server-metrics.js";

/** `AGGREGATION_TEMPORALITY_CUMULATIVE` of OTLP's `metrics.proto`. */
const cumulative = 2;

/** All that was counted until now in OTLP's JSON encoding (opentelemetry-proto: 64-bit integers as text). */
export function otlpMetricsBody(metrics: ServerMetrics, resource: Attributes, nowEpochMs: number): string {
  const times = {
    startTimeUnixNano: unixNano(metrics.startEpochMs),
    timeUnixNano: unixNano(nowEpochMs),
  };
  const rendered = metrics.histograms
    .filter(({ points }) => points.length > 0)
    .map((histogram) => otlpHistogram(histogram, times));
  return JSON.stringify({
    resourceMetrics: [
      {
        resource: { attributes: otlpAttributes(resource) },
        scopeMetrics: [{ scope: { name: "octavo" }, metrics: rendered }],
      },
    ],
  });
}

function otlpHistogram({ definition, points }: HistogramSeries, times: object): object {
  const { name, description, bounds } = definition;
  const dataPoints = points.map(({ attributes, bucketCounts, count, sum }) => ({
    attributes: otlpAttributes(attributes),
    ...times,
    count: String(count),
    sum,
    bucketCounts: bucketCounts.map(String),
    explicitBounds: bounds,
  }));
  return { name, description, unit: "s", histogram: { aggregationTemporality: cumulative, dataPoints } };
}
