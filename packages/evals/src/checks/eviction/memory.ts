import type { Observation } from "../observation.js";
import type { EvictionBurstSettings } from "./settings.js";

interface MemoryPoint {
  readonly epochMs: number;
  /** Share of the KV cache in use. */
  readonly usage: number;
}

/** How full the KV cache was while requests were served, at their ends, in order of time. */
export function memoryOf(
  observations: readonly Observation[],
  { quiet, burst, filler }: EvictionBurstSettings,
): readonly MemoryPoint[] {
  return observations
    .flatMap(({ condition, kvCacheUsage: usage, scheduledEpochMs, durationMs }) =>
      usage === undefined || ![quiet, burst, filler].includes(condition)
        ? []
        : [{ epochMs: scheduledEpochMs + durationMs, usage }],
    )
    .toSorted((a, b) => a.epochMs - b.epochMs);
}

/** Seconds from the last point at or below 40 % to the first at or above 90 % after it, as the published account has it. */
export function riseSeconds(memory: readonly MemoryPoint[]): number | undefined {
  const full = memory.find(({ usage }) => usage >= 0.9);
  if (full === undefined) return undefined;
  const low = memory.findLast(({ epochMs, usage }) => epochMs <= full.epochMs && usage <= 0.4);
  return low === undefined ? undefined : (full.epochMs - low.epochMs) / 1000;
}
