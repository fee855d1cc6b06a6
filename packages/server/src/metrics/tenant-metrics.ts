import type { Engine, EngineObserver } from "@octavo/engine";
import type { TenantLabels } from "../tenants/tenant-labels.js";
import type { TenantResolver } from "../tenants/tenant-resolver.js";
import { timeToFirstTokenBuckets } from "./buckets.js";
import type { Registry } from "@octavo/tracing/prometheus";

/** Load, usage and refusals by tenant, with bounded labels. */
export function registerTenantMetrics(
  registry: Registry,
  engine: Engine,
  tenants: TenantResolver,
  labels: TenantLabels,
): EngineObserver {
  const sequences = registry.gauge("octavo:tenant_sequences", "Running and waiting sequences by tenant.", [
    "tenant",
    "state",
  ]);
  const { tokens, refused } = registry.counters({
    tokens: [
      "octavo:tenant_tokens_total",
      "Tokens of finished requests by tenant and kind: prompt (computed), cached, output.",
      "tenant",
      "kind",
    ],
    refused: [
      "octavo:requests_refused_total",
      "Requests rejected or ended because of overload, quarantine or a deadline.",
      "tenant",
      "lane",
      "reason",
    ],
  });
  const firstToken = registry.histogram(
    "octavo:tenant_time_to_first_token_seconds",
    "Time to first token by tenant, in seconds.",
    timeToFirstTokenBuckets,
    ["tenant"],
  );
  registry.onCollect(() => {
    sequences.clear();
    for (const [tenant, { running, waiting }] of engine.stats.tenants ?? []) {
      const label = labels.of(tenant);
      sequences.add(running, { tenant: label, state: "running" });
      sequences.add(waiting, { tenant: label, state: "waiting" });
    }
  });
  return {
    onFinished({ tenant: name, usage, record }) {
      const tenant = labels.of(name);
      if (record.timeToFirstTokenMs === undefined) return;
      tokens.add(usage.promptTokens - usage.cachedTokens, { tenant, kind: "prompt" });
      tokens.add(usage.cachedTokens, { tenant, kind: "cached" });
      tokens.add(usage.completionTokens, { tenant, kind: "output" });
      firstToken.observe(record.timeToFirstTokenMs / 1000, { tenant });
    },
    onRefused({ tenant, lane, reason }) {
      refused.add(1, { tenant: labels.of(tenant), lane: tenants.laneName(lane), reason });
    },
  };
}
