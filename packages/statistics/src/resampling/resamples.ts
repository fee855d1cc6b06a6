import { normalCdf } from "../distributions/normal.js";
import { studentTQuantile } from "../distributions/student-t.js";
import type { Interval } from "../estimate.js";

/** Fewer clusters than this say nothing about how others would have been. */
export const minimumClusters = 8;

/** Fewer finite resamples than this have no tails to read. */
const minimumResamples = 40;

/**
 * Percentile interval (Efron 1979) of resampled values, expanded for small samples (Hesterberg 2015, "What teachers should know
 * about the bootstrap", section 4.3): resamples of n clusters spread less than samples do by sqrt((n - 1) / n), and are read as
 * if the spread were known; the levels are widened by the inverse factor and by Student's t. Undefined where too few are finite.
 */
export function percentileInterval(
  draws: readonly number[],
  confidence: number,
  { numClusters, degreesOfFreedom = numClusters - 1 }: { numClusters: number; degreesOfFreedom?: number },
): Interval | undefined {
  const sorted = draws.filter((value) => Number.isFinite(value)).toSorted((a, b) => a - b);
  // A statistic that is often undefined has no interval that could be read as one of its values.
  if (sorted.length < minimumResamples || sorted.length < 0.9 * draws.length) return undefined;
  const z =
    studentTQuantile((1 - confidence) / 2, degreesOfFreedom) * Math.sqrt(numClusters / (numClusters - 1));
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]!;
  return [at(normalCdf(z)), at(normalCdf(-z))];
}
