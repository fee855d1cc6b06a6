import { groupBy } from "@octavo/protocol";
import { mean, quantile } from "@octavo/statistics";
import type { RuleOfThumb } from "../check.js";
import type { Observation } from "../observation.js";
import { rounded } from "../judging/rounded.js";

interface WindowRule {
  readonly factor: number;
  readonly windowMs: number;
  readonly baselineMs: number;
  readonly prefillTokens: number;
}

/** The published per-token latency: duration over tokens of each completed call. */
function perTokenMs({ durationMs, completionTokens, failureCode }: Observation): number | undefined {
  return failureCode !== undefined || !completionTokens ? undefined : durationMs / completionTokens;
}

const mostRows = 20;

/** A tenant that waits so many times as long in the queue as the others is behind them in it. */
const starvedFactor = 2;

/**
 * The published rule: the 99th percentile of duration over tokens in a window, over `factor` times that of the day before it.
 * What was observed as the baseline is the day before, whenever it was.
 */
export function windowRule(
  baseline: readonly Observation[],
  current: readonly Observation[],
  { factor, windowMs, baselineMs, prefillTokens }: WindowRule,
): RuleOfThumb {
  const endOf = (seen: Observation) => seen.scheduledEpochMs + seen.durationMs;
  const windows = [...groupBy(current, (seen) => Math.floor(endOf(seen) / windowMs))].toSorted(
    ([a], [b]) => a - b,
  );
  const beginMs = windows[0] === undefined ? 0 : windows[0][0] * windowMs;
  let tripped = false;
  const rows = windows.map(([index, own]) => {
    const fromMs = index * windowMs;
    const before =
      baseline.length > 0
        ? baseline
        : current.filter((seen) => endOf(seen) < fromMs && endOf(seen) >= fromMs - baselineMs);
    const [now, usual] = [p99(own), p99(before)];
    const isOver = now !== null && usual !== null && now > factor * usual;
    if (isOver) tripped = true;
    const tagged = own.filter((seen) => (seen.prefillTokensInBatch ?? 0) > prefillTokens).length;
    const row = [
      (fromMs - beginMs) / 1000,
      own.length,
      rounded(now),
      rounded(usual),
      isOver ? "over" : "",
      tagged,
      droppedHits(own, before),
      starved(own),
    ];
    return { isOver, row };
  });
  const shown = rows.toSorted((a, b) => Number(b.isOver) - Number(a.isOver)).slice(0, mostRows);
  return {
    rule: `duration over tokens of each call; alert when its p99 in ${windowMs / 60_000} minutes exceeds ${factor} times that of the ${Math.round(baselineMs / 3_600_000)} hours before; prefill_in_batch > ${prefillTokens} tags a prefill burst, a cache hit ratio below the one before an eviction, a tenant that queued longest in a window of several a starved one`,
    tripped,
    columns: [
      "window from, s",
      "calls",
      "p99 ms per token",
      "before",
      "",
      `prefill_in_batch > ${prefillTokens}`,
      "hit ratio, less than before",
      "queued behind others",
    ],
    rows: shown.map(({ row }) => row),
  };
}

function p99(seen: readonly Observation[]): number | null {
  const values = seen.flatMap((one) => perTokenMs(one) ?? []);
  return values.length === 0 ? null : quantile(values, 0.99);
}

/** How far the mean hit ratio of the prefix cache fell; null where spans do not say, 0 where it did not. */
function droppedHits(own: readonly Observation[], before: readonly Observation[]): number | null {
  const [now, usual] = [own, before].map((seen) => seen.flatMap(({ cacheHitRatio }) => cacheHitRatio ?? []));
  if (now!.length === 0 || usual!.length === 0) return null;
  return rounded(Math.max(0, mean(usual!) - mean(now!)));
}

/**
 * The tenant that was starved: most of its time went to the queue while others were served, its mean wait is the longest and more
 * than `starvedFactor` times that of the others. Spans say no priorities. Null where they do not say the wait, or whose it was.
 */
function starved(own: readonly Observation[]): string | null {
  const waits = own.filter(({ queueMs, tenant }) => queueMs !== undefined && tenant !== undefined);
  const tenants = [...groupBy(waits, ({ tenant }) => tenant)];
  if (tenants.length < 2) return null;
  const waitOf = (seen: readonly Observation[]) => mean(seen.map(({ queueMs }) => queueMs ?? 0));
  const [tenant, longest] = tenants
    .map(([name, seen]) => [name, waitOf(seen)] as const)
    .reduce((most, one) => (one[1] > most[1] ? one : most));
  const others = waitOf(waits.filter((seen) => seen.tenant !== tenant));
  return longest > starvedFactor * others && longest > 0 ? (tenant ?? null) : "";
}
