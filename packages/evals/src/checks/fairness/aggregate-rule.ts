import { groupBy } from "@octavo/protocol";
import { quantile } from "@octavo/statistics";
import type { RuleOfThumb } from "../check.js";
import type { Observation } from "../observation.js";
import { rounded } from "../judging/rounded.js";

interface AggregateRule {
  readonly ruleOfThumb: RuleOfThumb;
  readonly aggregateP99Ms: number | undefined;
}

/**
 * The published rule: in a rolling window, a tenant's 99th percentile of latency over `factor` times that of all. Windows are
 * laid end to end from the first request.
 */
export function aggregateRule(
  observations: readonly Observation[],
  { factor, windowMs }: { readonly factor: number; readonly windowMs: number },
): AggregateRule {
  const latencies = (seen: readonly Observation[]) => seen.map(({ durationMs }) => durationMs);
  const p99 = (seen: readonly Observation[]) => quantile(latencies(seen), 0.99);
  const windows = groupBy(observations, windowIndex(observations, windowMs));
  const tenants = groupBy(observations, ({ tenant }) => tenant ?? "");
  let tripped = false;
  const rows = [...tenants].map(([tenant, own]) => {
    let windowsOver = 0;
    for (const [, inWindow] of windows) {
      const ofTenant = inWindow.filter((seen) => (seen.tenant ?? "") === tenant);
      if (ofTenant.length > 0 && p99(ofTenant) > factor * p99(inWindow)) windowsOver += 1;
    }
    if (windowsOver > 0) tripped = true;
    return [
      tenant,
      own.length,
      rounded(p99(own), 2),
      rounded(p99(own) / p99(observations), 2),
      `${windowsOver} of ${windows.size}`,
    ];
  });
  return {
    aggregateP99Ms: observations.length === 0 ? undefined : p99(observations),
    ruleOfThumb: {
      rule: `alert when a tenant's p99 latency exceeds ${factor} times the aggregate's in a window of ${Math.round(windowMs / 1000)} s`,
      tripped,
      columns: ["tenant", "requests", "p99 ms", "over aggregate", "windows over"],
      rows,
    },
  };
}

function windowIndex(observations: readonly Observation[], windowMs: number): (seen: Observation) => number {
  const beginMs = observations.reduce(
    (least, seen) => Math.min(least, seen.scheduledEpochMs),
    Number.POSITIVE_INFINITY,
  );
  return ({ scheduledEpochMs }) => Math.floor((scheduledEpochMs - beginMs) / windowMs);
}
