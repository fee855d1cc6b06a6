import { quantile } from "@octavo/statistics";
import type { Observation } from "../observation.js";
import { byTime } from "../judging/time-blocks.js";
import { isFailed, waitOf } from "./state-effects.js";

/** How the burst went on, in ms from its beginning. */
export interface Lag {
  readonly beginEpochMs: number;
  /** When the first request found more replicas than the burst's first one. */
  readonly joinedMs: number | undefined;
  /** From when on no tenth of the burst waited longer than is allowed, at its 90th percentile. */
  readonly recoveredMs: number | undefined;
}

const numSlices = 10;

/** @param limitMs what a first token may take */
export function lagOf(burst: readonly Observation[], limitMs: number | undefined): Lag | undefined {
  const sorted = byTime(burst);
  const [first, last] = [sorted[0], sorted.at(-1)];
  if (first === undefined || last === undefined) return undefined;
  const beginEpochMs = first.scheduledEpochMs;
  const joined = sorted.find(({ replicaCount }) => (replicaCount ?? 0) > (first.replicaCount ?? Infinity));
  const lengthMs = last.scheduledEpochMs - beginEpochMs;
  return {
    beginEpochMs,
    joinedMs: joined && joined.scheduledEpochMs - beginEpochMs,
    recoveredMs: limitMs === undefined ? undefined : recovered(sorted, beginEpochMs, lengthMs, limitMs),
  };
}

function recovered(
  sorted: readonly Observation[],
  beginMs: number,
  lengthMs: number,
  limitMs: number,
): number | undefined {
  const sliceMs = Math.max(1, lengthMs / numSlices);
  let from: number | undefined = 0;
  for (let slice = 0; slice < numSlices; slice++) {
    const waits = sorted
      .filter(({ scheduledEpochMs }) => {
        const index = Math.min(numSlices - 1, Math.floor((scheduledEpochMs - beginMs) / sliceMs));
        return index === slice;
      })
      .flatMap((seen) => (isFailed(seen) ? Number.MAX_SAFE_INTEGER : (waitOf(seen) ?? [])));
    if (waits.length === 0) continue;
    if (quantile(waits, 0.9) > limitMs) from = undefined;
    else from ??= slice * sliceMs;
  }
  return from;
}
