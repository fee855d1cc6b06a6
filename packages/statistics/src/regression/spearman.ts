import { requireLevel, requireSameLength, requireSample } from "../check.js";
import { normalQuantile } from "../distributions/normal.js";
import { studentTTail } from "../distributions/student-t.js";
import type { Interval } from "../estimate.js";
import { mean, midranks } from "../sample.js";

export interface Correlation {
  /** In [-1, 1]; undefined where one side does not vary. */
  readonly estimate: number | undefined;
  readonly interval: Interval | undefined;
  readonly confidence: number;
  /** Two-sided, of no monotone relation; undefined with fewer than 3 pairs. */
  readonly pValue: number | undefined;
}

/**
 * Spearman's rank correlation (1904), ties sharing their ranks; p by the t distribution, interval by Fisher's z with the
 * variance of Bonett and Wright (2000), from 4 pairs on. Throws `invalid_option` on empty or unequal lists.
 */
export function spearman(
  first: readonly number[],
  second: readonly number[],
  confidence = 0.95,
): Correlation {
  requireSample("first", first);
  requireSample("second", second);
  requireSameLength("first", first.length, "second", second.length);
  requireLevel("confidence", confidence);
  const estimate = pearson(midranks(first).ranks, midranks(second).ranks);
  const n = first.length;
  if (estimate === undefined || n < 3)
    return { estimate, interval: undefined, confidence, pValue: undefined };
  const t = estimate * Math.sqrt((n - 2) / ((1 - estimate) * (1 + estimate)));
  const pValue = Math.abs(estimate) === 1 ? 0 : Math.min(1, 2 * studentTTail(t, n - 2));
  if (n < 4 || Math.abs(estimate) === 1) return { estimate, interval: undefined, confidence, pValue };
  const half = -normalQuantile((1 - confidence) / 2) * Math.sqrt((1 + (estimate * estimate) / 2) / (n - 3));
  const center = Math.atanh(estimate);
  return { estimate, interval: [Math.tanh(center - half), Math.tanh(center + half)], confidence, pValue };
}

function pearson(a: Float64Array, b: Float64Array): number | undefined {
  const aMean = mean(a);
  const bMean = mean(b);
  let product = 0;
  let aSquares = 0;
  let bSquares = 0;
  for (let i = 0; i < a.length; i++) {
    product += (a[i]! - aMean) * (b[i]! - bMean);
    aSquares += (a[i]! - aMean) ** 2;
    bSquares += (b[i]! - bMean) ** 2;
  }
  if (aSquares === 0 || bSquares === 0) return undefined;
  return Math.min(1, Math.max(-1, product / Math.sqrt(aSquares * bSquares)));
}
