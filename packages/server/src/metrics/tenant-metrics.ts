import type { Engine, EngineObserver } from "@octavo/engine";
import type { TenantLabels } from "../tenants/tenant-labels.js";
import type { TenantResolver } from "../tenants/tenant-resolver.js";
import { timeToFirstTokenBuckets } from "./buckets.js";
import type { Registry } from "./registry.js";

/** What each tenant has, waits for and is refused. Labels are bounded by `labels`. */
export function registerTenantMetrics(
  registry: Registry,
  engine: Engine,
  tenants: TenantResolver,
  labels: TenantLabels,
): EngineObserver {
  const sequences = registry.gauge(
    "octavo:tenant_sequences",
    "Sequences that run and that wait, by tenant.",
    ["tenant", "state"],
  );
  const tokens = registry.counter(
    "octavo:tenant_tokens_total",
    "Tokens of finished requests by tenant: of prompts, computed and from the cache, and generated.",
    ["tenant", "kind"],
  );
  const firstToken = registry.histogram(
    "octavo:tenant_time_to_first_token_seconds",
    "Time to first token by tenant, in seconds.",
    timeToFirstTokenBuckets,
    ["tenant"],
  );
  const refused = registry.counter(
    "octavo:requests_refused_total",
    "Requests that were refused or ended because there was too much to do.",
    ["tenant", "lane", "reason"],
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
