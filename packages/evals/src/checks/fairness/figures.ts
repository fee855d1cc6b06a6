import { groupBy } from "@octavo/protocol";
import type { Chart } from "../check.js";
import type { Observation } from "../observation.js";
import { byTime, thinned } from "../judging/time-blocks.js";
import type { OwnTraffic } from "./latency-effects.js";
import { servicesOf } from "./service-gap.js";

/** Latencies by the time since the condition began, with the stretches in which others sent most. */
export function latencySeries(
  own: OwnTraffic,
  shared: readonly Observation[],
  tenant: string | undefined,
): readonly Chart[] {
  if (own.shared.length === 0) return [];
  const beginOf = (seen: readonly Observation[]) => byTime(seen)[0]?.scheduledEpochMs ?? 0;
  const line = (label: string, seen: readonly Observation[], beginMs: number) => ({
    label,
    points: thinned(byTime(seen)).map(
      (one) => [(one.scheduledEpochMs - beginMs) / 1000, one.durationMs] as const,
    ),
  });
  const beginMs = beginOf(shared);
  return [
    {
      kind: "series",
      title: `Whole answers of ${tenant ?? "the small tenant"}`,
      xLabel: "s since the beginning",
      yLabel: "ms",
      lines: [line("alone", own.solo, beginOf(own.solo)), line("beside others", own.shared, beginMs)],
      spans: burstSpans(
        shared.filter((seen) => seen.tenant !== tenant),
        beginMs,
      ),
    },
  ];
}

/** Fortieths of the time in which more than twice the mean number of requests came. */
function burstSpans(
  others: readonly Observation[],
  beginMs: number,
): readonly { readonly label: string; readonly from: number; readonly to: number }[] {
  const sorted = byTime(others);
  const lengthMs = (sorted.at(-1)?.scheduledEpochMs ?? beginMs) - beginMs;
  if (sorted.length < 40 || lengthMs <= 0) return [];
  const counts = Array.from({ length: 40 }, () => 0);
  for (const { scheduledEpochMs } of sorted) {
    const index = Math.min(39, Math.floor((40 * (scheduledEpochMs - beginMs)) / lengthMs));
    if (index >= 0) counts[index] = counts[index]! + 1;
  }
  const width = lengthMs / 40_000;
  return counts.flatMap((count, index) =>
    count > (2 * sorted.length) / 40
      ? [{ label: "burst", from: index * width, to: (index + 1) * width }]
      : [],
  );
}

/** What each tenant was served, added up. */
export function serviceSeries(shared: readonly Observation[]): readonly Chart[] {
  const services = servicesOf(shared);
  const [first] = services;
  if (first === undefined) return [];
  const lines = [...groupBy(services, ({ tenant }) => tenant)].slice(0, 8).map(([tenant, own]) => {
    let sum = 0;
    const points = own.map(({ atMs, tokens }) => [(atMs - first.atMs) / 1000, (sum += tokens)] as const);
    return { label: tenant, points: thinned(points) };
  });
  const title = "Tokens served (prompts 1, outputs 2)";
  return [{ kind: "series", title, xLabel: "s since the first token", yLabel: "tokens", lines }];
}
