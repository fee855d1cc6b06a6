import { groupBy } from "@octavo/protocol";
import type { Observation } from "../observation.js";

interface TimedGap {
  /** When it ended, ms since 1970. */
  readonly atMs: number;
  readonly ms: number;
}

/**
 * The time between outputs, with when it ended. Where only a summary was recorded, a request counts with its longest gap,
 * which is what its reader noticed, at its end.
 */
export function gapsOf(seen: Observation): readonly TimedGap[] {
  const { gapsMs, gapSummary, scheduledEpochMs, firstTokenMs = 0, durationMs } = seen;
  if (gapsMs.length > 0) {
    let atMs = scheduledEpochMs + firstTokenMs;
    return gapsMs.map((ms) => ({ atMs: (atMs += ms), ms }));
  }
  const longest = gapSummary?.maxMs ?? gapSummary?.p99Ms;
  return longest === undefined ? [] : [{ atMs: scheduledEpochMs + durationMs, ms: longest }];
}

/** Gaps that ended in the same stretch of time, in the order of time. */
export function slicesOf(
  observations: readonly Observation[],
  sliceMs: number,
): readonly (readonly number[])[] {
  const gaps = observations.flatMap(gapsOf);
  return [...groupBy(gaps, ({ atMs }) => Math.floor(atMs / sliceMs))]
    .toSorted(([a], [b]) => a - b)
    .map(([, own]) => own.map(({ ms }) => ms));
}

const hourMs = 3_600_000;
/** Fewer requests of the same hour than this are no baseline. */
const fewestSameHour = 50;

/** The part of a recorded baseline from the same hours of the day, so that mornings are not compared with nights. */
export function sameHours(
  baseline: readonly Observation[],
  current: readonly Observation[],
): { readonly baseline: readonly Observation[]; readonly isSameHour: boolean } {
  const hourOf = ({ scheduledEpochMs }: Observation) => Math.floor(scheduledEpochMs / hourMs) % 24;
  const hours = new Set(current.map(hourOf));
  const same = baseline.filter((seen) => hours.has(hourOf(seen)));
  const spansDays = new Set(baseline.map(hourOf)).size > hours.size;
  const isSameHour = spansDays && same.length >= fewestSameHour;
  return { baseline: isSameHour ? same : baseline, isSameHour };
}
