import { OctavoError } from "@octavo/protocol";
import type { Interval } from "../estimate.js";

/** Fewer clusters than this say nothing about how others would have been. */
export const minimumClusters = 8;

/** Fewer finite resamples than this have no tails to read. */
const minimumResamples = 40;

/** Percentile interval (Efron 1979) of resampled values; undefined where too few are finite. */
export function percentileInterval(draws: readonly number[], confidence: number): Interval | undefined {
  const sorted = draws.filter((value) => Number.isFinite(value)).toSorted((a, b) => a - b);
  // A statistic that is often undefined has no interval that could be read as one of its values.
  if (sorted.length < minimumResamples || sorted.length < 0.9 * draws.length) return undefined;
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]!;
  return [at((1 - confidence) / 2), at((1 + confidence) / 2)];
}

export function requireStatistic(value: number): void {
  if (Number.isFinite(value)) return;
  throw new OctavoError(
    "invalid_option",
    `The statistic of the sample is ${value}; expected a finite number.`,
    {
      param: "statistic",
    },
  );
}
