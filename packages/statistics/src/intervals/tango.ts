import { requireLevel } from "../check.js";
import { findRootBetween } from "../distributions/find-root.js";
import { normalQuantile } from "../distributions/normal.js";
import type { Interval } from "../estimate.js";
import { type PairedTable, requirePairs } from "../tests/paired-table.js";

/** Where the Cornish-Fisher term stops growing: beyond, no error rate in use is decided. */
const mostSkewShift = 1.2;

/**
 * Tango's score statistic (1998, "Equivalence test and confidence interval for the difference in proportions for the
 * paired-sample design") for the hypothesis that gains less losses are the share `difference`: about standard normal under it,
 * positive where the data shows more. The nuisance is the restricted maximum-likelihood share of losses.
 *
 * Counts are whole and those of rare pairs skewed, so that the plain statistic errs up to twice alpha. The distance is
 * therefore shortened by half a pair (continuity) and moved by Cornish and Fisher's first term (1938), skewness times
 * (z^2 - 1) / 6 in units of pairs, z being the plain statistic. By enumeration of all tables of 20 to 500 pairs, errors at 0.005
 * to 0.05 then exceed alpha by no more than a fiftieth of it.
 */
export function tangoStatistic(table: PairedTable, difference: number): number {
  const n = requirePairs(table);
  const { lost, gained } = table;
  const shareLost = restrictedShareLost(n, lost, gained, difference);
  const variance = n * (2 * shareLost + difference * (1 - difference));
  const distance = gained - lost - n * difference;
  if (distance === 0) return 0;
  if (variance <= 0) return Math.sign(distance) * Infinity;
  const size = Math.abs(distance);
  const skewness = Math.sign(distance) * skewnessOf(shareLost, difference);
  const corrected = size - correction(skewness, size / Math.sqrt(variance));
  return (Math.sign(distance) * Math.max(0, corrected)) / Math.sqrt(variance);
}

/**
 * Restricted maximum-likelihood share of pairs lost, of `n` pairs (or shares of them, n being 1), where gains less losses are
 * the share `difference`.
 */
export function restrictedShareLost(n: number, lost: number, gained: number, difference: number): number {
  // Root of 2n q^2 + linear q + constant, where the likelihood's slope is 0.
  const linear = -(lost + gained) + (2 * n - gained + lost) * difference;
  const constant = -lost * difference * (1 - difference);
  const share = (Math.sqrt(Math.max(0, linear * linear - 8 * n * constant)) - linear) / (4 * n);
  return Math.min(1, Math.max(0, -difference, share));
}

/** Skewness of gains less losses, third cumulant over second: (gained - lost) / (gained + lost) of the supposed shares. */
export function skewnessOf(shareLost: number, difference: number): number {
  return difference === 0 ? 0 : difference / (2 * shareLost + difference);
}

/** Pairs by which a distance is shortened; `skewness` is positive where the distance lies in the longer tail. */
export function correction(skewness: number, z: number): number {
  return 0.5 + skewness * Math.min(mostSkewShift, Math.max(0, (z * z - 1) / 6));
}

/** All differences that Tango's test does not reject, for gains less losses as a share of pairs. */
export function tangoInterval(table: PairedTable, confidence = 0.95): Interval {
  const n = requirePairs(table);
  requireLevel("confidence", confidence);
  const z = -normalQuantile((1 - confidence) / 2);
  const estimate = (table.gained - table.lost) / n;
  const end = (far: number, level: number): number =>
    estimate === far
      ? far
      : findRootBetween(
          (difference) => clamp(level - tangoStatistic(table, difference)),
          Math.min(far, estimate),
          Math.max(far, estimate),
        );
  return [end(-1, z), end(1, -z)];
}

/** Statistics are infinite at differences of 1, where nothing varies. */
function clamp(value: number): number {
  return Math.min(1e6, Math.max(-1e6, value));
}
