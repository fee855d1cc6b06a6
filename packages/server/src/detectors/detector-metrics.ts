import { BoundedLabels } from "../metrics/bounded-labels.js";
import type { Registry } from "@octavo/tracing/prometheus";
import { alertReasons } from "./alert.js";
import type { Alert } from "./alert-center.js";
import type { AlertWebhook } from "./alert-webhook.js";
import type { DetectorSuite } from "./detector-suite.js";

/** Beyond these tenants, the largest ratio of the others is shown. */
const mostTenantSeries = 128;

/** Metrics of the detectors. They exist, empty or 0, even if detectors are off. */
export class DetectorMetrics {
  readonly #counters;
  readonly #gauges;
  readonly #tenants = new BoundedLabels({ maxTenants: mostTenantSeries, maxFeatures: 0 });

  constructor(registry: Registry) {
    const labels = ["detector", "form", "reason"];
    this.#counters = registry.counters({
      alerts: ["octavo:alerts_total", "Alerts that began to fire.", ...labels],
      slowGaps: [
        "octavo:slow_gap_seconds_total",
        "Time of slow gaps between tokens beyond the usual gap, by reason.",
        "reason",
      ],
      webhook: ["octavo:alert_webhook_total", "Alerts by outcome of their delivery.", "outcome"],
    });
    this.#gauges = registry.gauges({
      active: ["octavo:alerts_firing", "Alerts that fire.", ...labels],
      gapP99: [
        "octavo:inter_token_latency_p99_seconds",
        "99th percentile of gaps between tokens as the detector sees it.",
        "window",
      ],
      hitRatio: [
        "octavo:prefix_cache_hit_ratio",
        "Hit ratio of the prefix cache as the detector sees it.",
        "window",
      ],
      tenantRatio: [
        "octavo:tenant_latency_p99_ratio",
        "99th percentile of a tenant's requests over that of all, in five minutes.",
        "tenant",
      ],
    });
    for (const reason of alertReasons) this.#counters.slowGaps.add(0, { reason });
    for (const outcome of ["delivered", "failed", "dropped"]) this.#counters.webhook.add(0, { outcome });
  }

  alerted({ status, detector, form, reason }: Alert): void {
    if (status === "firing") this.#counters.alerts.add(1, { detector, form, reason });
  }

  slowGap(reason: string, excessMs: number): void {
    this.#counters.slowGaps.add(excessMs / 1000, { reason });
  }

  show(suite: DetectorSuite, active: readonly Alert[], webhook: AlertWebhook | undefined): void {
    this.#gauges.active.clear();
    for (const { detector, form, reason } of active) this.#gauges.active.add(1, { detector, form, reason });
    this.#gauges.gapP99.clear();
    this.#gauges.hitRatio.clear();
    for (const [window, now] of [
      ["5m", "now"],
      ["24h", "usual"],
    ] as const) {
      const p99Ms = suite.decodeLatency.p99Ms[now];
      const ratio = suite.cacheHitRatio.ratio[now];
      if (p99Ms !== undefined) this.#gauges.gapP99.set(p99Ms / 1000, { window });
      if (ratio !== undefined) this.#gauges.hitRatio.set(ratio, { window });
    }
    this.#gauges.tenantRatio.clear();
    for (const [name, ratio] of suite.tenantLatency.ratios()) {
      const tenant = this.#tenants.tenant(name);
      this.#gauges.tenantRatio.set(Math.max(ratio, this.#gauges.tenantRatio.value({ tenant })), { tenant });
    }
    for (const outcome of ["delivered", "failed", "dropped"] as const)
      this.#counters.webhook.raiseTo(webhook?.[outcome] ?? 0, { outcome });
  }
}
