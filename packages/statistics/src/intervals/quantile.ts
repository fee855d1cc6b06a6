import { requireLevel, requireSample } from "../check.js";
import { binomialCdf } from "../distributions/binomial.js";
import type { Interval } from "../estimate.js";
import { sum } from "../sample.js";

/**
 * The smallest observation whose cumulative share reaches `level` (type 1 of Hyndman and Fan 1996): always an observation.
 * Throws `invalid_option` on an empty sample or a level outside [0, 1].
 */
export function quantile(values: readonly number[], level: number): number {
  requireSample("values", values);
  if (level !== 0 && level !== 1) requireLevel("level", level);
  return sortedQuantile(
    values.toSorted((a, b) => a - b),
    level,
  );
}

/** The same of values already in ascending order, unchecked. */
export function sortedQuantile(sorted: ArrayLike<number>, level: number): number {
  // A share such as 0.95 * 20 may come out a rounding error above the whole number that it is.
  const rank = Math.ceil(level * sorted.length * (1 - 4 * Number.EPSILON));
  return sorted[Math.min(sorted.length, Math.max(1, rank)) - 1]!;
}

/**
 * Observations between which the quantile of the distribution lies with at least `confidence`, whatever the distribution
 * (order statistics; Hahn and Meeker 1991, section 5.2), with equal error allowed at both ends. Undefined where the sample
 * is too small for two finite ends. Values must be independent: gaps of one request are not.
 */
export function quantileInterval(
  values: readonly number[],
  level: number,
  confidence = 0.95,
): Interval | undefined {
  requireLevel("confidence", confidence);
  const lower = quantileBound(values, level, (1 - confidence) / 2);
  const upper = quantileBound(values, level, (1 + confidence) / 2);
  return lower === undefined || upper === undefined ? undefined : [lower, upper];
}

/**
 * One-sided bound by an order statistic: for `confidence` above one half the smallest observation that is at or above the
 * quantile with that probability, otherwise the largest that is below or at it with the remaining one. Undefined where not
 * even the greatest, or least, observation is.
 */
export function quantileBound(
  values: readonly number[],
  level: number,
  confidence: number,
): number | undefined {
  requireSample("values", values);
  requireLevel("level", level);
  requireLevel("confidence", confidence);
  const sorted = values.toSorted((a, b) => a - b);
  const n = sorted.length;
  // Among n observations, let a binomial number B lie below the quantile: x(r) is at or above it if and only if B <= r - 1.
  let low = 0;
  let high = n;
  if (confidence >= 0.5) {
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      if (binomialCdf(middle, n, level) >= confidence) high = middle;
      else low = middle + 1;
    }
    return low >= n ? undefined : sorted[low];
  }
  // x(r) is at or below it if and only if B >= r: the largest r with P(B <= r - 1) <= confidence.
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (binomialCdf(middle - 1, n, level) <= confidence) low = middle;
    else high = middle - 1;
  }
  return low === 0 ? undefined : sorted[low - 1];
}

/**
 * How many independent observations a finite bound at the far side of the quantile needs: the least n whose greatest (for
 * levels above one half, else least) observation is beyond it with probability `confidence`. 368 for a p99 at 0.975, which
 * is one end of a two-sided 95 % interval.
 */
export function requestsForQuantileBound(level: number, confidence: number): number {
  requireLevel("level", level);
  requireLevel("confidence", confidence);
  const n = Math.log1p(-confidence) / Math.log(Math.max(level, 1 - level));
  return Math.ceil(n * (1 - 4 * Number.EPSILON));
}

/**
 * Mean of the worst `1 - level` of values (conditional value at risk; Rockafellar and Uryasev 2000), the border observation
 * counted in part. `worse` says which end is meant.
 */
export function tailMean(
  values: readonly number[],
  level: number,
  worse: "higher" | "lower" = "higher",
): number {
  requireSample("values", values);
  requireLevel("level", level);
  const sorted = values.toSorted((a, b) => (worse === "higher" ? b - a : a - b));
  const product = (1 - level) * sorted.length;
  // A whole number of observations may come out a rounding error off.
  const mass = Math.abs(product - Math.round(product)) < 1e-9 ? Math.max(1, Math.round(product)) : product;
  const whole = Math.floor(mass);
  return (sum(sorted.slice(0, whole)) + (mass - whole) * (sorted[whole] ?? 0)) / mass;
}
