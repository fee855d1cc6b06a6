import type { OtlpServerMetrics } from "../tracing/otlp-metrics.js";
import type { ServerTracing } from "../account/server-tracing.js";
import type { Registry } from "./registry.js";

/** What became of spans and of exports of metrics; 0 throughout where they are off. */
export function registerTraceMetrics(
  registry: Registry,
  tracing: ServerTracing | undefined,
  otlpMetrics: OtlpServerMetrics | undefined,
): void {
  const spans = registry.counter(
    "octavo:trace_spans_total",
    "Spans by what became of them: delivered, dropped_full (the buffer was full), dropped_failed (refused or given up).",
    ["outcome"],
  );
  const waiting = registry.gauge("octavo:trace_spans_waiting", "Spans that wait to be delivered.");
  const metricExports = registry.counter(
    "octavo:otlp_metric_exports_total",
    "Exports of metrics over OTLP by what became of them: delivered, failed, skipped (the one before was under way).",
    ["outcome"],
  );
  const counted = { delivered: 0, dropped_full: 0, dropped_failed: 0 };
  const exported = { delivered: 0, failed: 0, skipped: 0 };
  registry.onCollect(() => {
    const counts = tracing?.counts ?? [];
    const sum = (count: (each: (typeof counts)[number]) => number): number =>
      counts.reduce((total, each) => total + count(each), 0);
    const now = {
      delivered: sum(({ delivered }) => delivered),
      dropped_full: sum(({ droppedFull }) => droppedFull),
      dropped_failed: sum(({ droppedFailed }) => droppedFailed),
    };
    for (const outcome of ["delivered", "dropped_full", "dropped_failed"] as const) {
      spans.add(now[outcome] - counted[outcome], { outcome });
      counted[outcome] = now[outcome];
    }
    waiting.set(sum((each) => each.waiting));
    const { counts: nowExported = exported } = otlpMetrics ?? {};
    for (const outcome of ["delivered", "failed", "skipped"] as const) {
      metricExports.add(nowExported[outcome] - exported[outcome], { outcome });
      exported[outcome] = nowExported[outcome];
    }
  });
}
