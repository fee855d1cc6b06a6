import { BoundedLabels } from "../metrics/bounded-labels.js";
import type { Registry } from "../metrics/registry.js";
import { alertReasons } from "./alert.js";
import type { Alert } from "./alert-center.js";
import type { AlertWebhook } from "./alert-webhook.js";
import type { DetectorSuite } from "./detector-suite.js";

/** Of the others the largest ratio is shown. */
const mostTenantSeries = 128;

/** What detectors see and say. All are there when detectors are off, and then show nothing. */
export class DetectorMetrics {
  readonly #alerts;
  readonly #active;
  readonly #slowGaps;
  readonly #gapP99;
  readonly #hitRatio;
  readonly #tenantRatio;
  readonly #webhook;
  readonly #tenants = new BoundedLabels({ maxTenants: mostTenantSeries, maxFeatures: 0 });

  constructor(registry: Registry) {
    const labels = ["detector", "form", "reason"];
    this.#alerts = registry.counter("octavo:alerts_total", "Alerts that began to fire.", labels);
    this.#active = registry.gauge("octavo:alerts_firing", "Alerts that fire.", labels);
    this.#slowGaps = registry.counter(
      "octavo:slow_gap_seconds_total",
      "What gaps between tokens took beyond the usual, of those that were much longer, by reason.",
      ["reason"],
    );
    this.#gapP99 = registry.gauge(
      "octavo:inter_token_latency_p99_seconds",
      "99th percentile of gaps between tokens as the detector sees it.",
      ["window"],
    );
    this.#hitRatio = registry.gauge(
      "octavo:prefix_cache_hit_ratio",
      "Hit ratio of the prefix cache as the detector sees it.",
      ["window"],
    );
    this.#tenantRatio = registry.gauge(
      "octavo:tenant_latency_p99_ratio",
      "99th percentile of a tenant's requests over that of all, in five minutes.",
      ["tenant"],
    );
    this.#webhook = registry.counter(
      "octavo:alert_webhook_total",
      "Alerts by what became of their delivery.",
      ["outcome"],
    );
    for (const reason of alertReasons) this.#slowGaps.add(0, { reason });
    for (const outcome of ["delivered", "failed", "dropped"]) this.#webhook.add(0, { outcome });
  }

  alerted({ status, detector, form, reason }: Alert): void {
    if (status === "firing") this.#alerts.add(1, { detector, form, reason });
  }

  slowGap(reason: string, excessMs: number): void {
    this.#slowGaps.add(excessMs / 1000, { reason });
  }

  show(suite: DetectorSuite, active: readonly Alert[], webhook: AlertWebhook | undefined): void {
    this.#active.clear();
    for (const { detector, form, reason } of active) this.#active.add(1, { detector, form, reason });
    this.#gapP99.clear();
    this.#hitRatio.clear();
    for (const [window, now] of [
      ["5m", "now"],
      ["24h", "usual"],
    ] as const) {
      const p99Ms = suite.decodeLatency.p99Ms[now];
      const ratio = suite.cacheHitRatio.ratio[now];
      if (p99Ms !== undefined) this.#gapP99.set(p99Ms / 1000, { window });
      if (ratio !== undefined) this.#hitRatio.set(ratio, { window });
    }
    this.#tenantRatio.clear();
    for (const [name, ratio] of suite.tenantLatency.ratios()) {
      const tenant = this.#tenants.tenant(name);
      this.#tenantRatio.set(Math.max(ratio, this.#tenantRatio.value({ tenant })), { tenant });
    }
    for (const outcome of ["delivered", "failed", "dropped"] as const)
      this.#webhook.raiseTo(webhook?.[outcome] ?? 0, { outcome });
  }
}
