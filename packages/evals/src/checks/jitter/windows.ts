import { quantile } from "@octavo/statistics";
import type { RuleOfThumb } from "../check.js";
import type { Observation } from "../observation.js";
import { groupBy } from "../support/group-by.js";

export interface WindowRule {
  readonly factor: number;
  readonly windowMs: number;
  readonly baselineMs: number;
  readonly prefillTokens: number;
}

/** The published per-token latency: duration over tokens of each completed call. */
export function perTokenMs({ durationMs, completionTokens, failureCode }: Observation): number | undefined {
  return failureCode !== undefined || !completionTokens ? undefined : durationMs / completionTokens;
}

const mostRows = 20;

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
    return { isOver, row: [(fromMs - beginMs) / 1000, own.length, now, usual, isOver ? "over" : "", tagged] };
  });
  const shown = rows.toSorted((a, b) => Number(b.isOver) - Number(a.isOver)).slice(0, mostRows);
  return {
    rule: `duration over tokens of each call; alert when its p99 in ${windowMs / 60_000} minutes exceeds ${factor} times that of the ${Math.round(baselineMs / 3_600_000)} hours before; prefill_in_batch > ${prefillTokens} tags a prefill burst`,
    tripped,
    columns: [
      "window from, s",
      "calls",
      "p99 ms per token",
      "before",
      "",
      `prefill_in_batch > ${prefillTokens}`,
    ],
    rows: shown.map(({ row }) => row),
  };
}

function p99(seen: readonly Observation[]): number | null {
  const values = seen.flatMap((one) => perTokenMs(one) ?? []);
  return values.length === 0 ? null : Math.round(1000 * quantile(values, 0.99)) / 1000;
}
