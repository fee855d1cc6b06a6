import type { SinkCounts } from "@octavo/tracing";
import type { OtlpServerMetrics } from "../tracing/otlp-metrics.js";
import type { ServerTracing } from "../account/server-tracing.js";
import type { Registry } from "@octavo/tracing/prometheus";

/** Delivery of spans and metric exports; all 0 if they are off. */
export function registerTraceMetrics(
  registry: Registry,
  tracing: ServerTracing | undefined,
  otlpMetrics: OtlpServerMetrics | undefined,
): void {
  const { spans, metricExports } = registry.counters({
    spans: [
      "octavo:trace_spans_total",
      "Spans by outcome: delivered, dropped_full (the buffer was full), dropped_failed (refused or given up).",
      "outcome",
    ],
    metricExports: [
      "octavo:otlp_metric_exports_total",
      "OTLP metric exports by outcome: delivered, failed, skipped (the previous one was under way).",
      "outcome",
    ],
  });
  const waiting = registry.gauge("octavo:trace_spans_waiting", "Spans waiting for delivery.");
  registry.onCollect(() => {
    const counts = tracing?.counts ?? [];
    const total = (field: keyof SinkCounts): number => counts.reduce((sum, each) => sum + each[field], 0);
    spans.raiseTo(total("delivered"), { outcome: "delivered" });
    spans.raiseTo(total("droppedFull"), { outcome: "dropped_full" });
    spans.raiseTo(total("droppedFailed"), { outcome: "dropped_failed" });
    waiting.set(total("waiting"));
    for (const outcome of ["delivered", "failed", "skipped"] as const)
      metricExports.raiseTo(otlpMetrics?.counts[outcome] ?? 0, { outcome });
  });
}
