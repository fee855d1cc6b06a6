import type { Interval } from "@octavo/statistics";

/** An interval for an effect at any confidence; undefined where the data gives none. */
export type IntervalAt = (confidence: number) => Interval | undefined;

const least = 1e-12;

/**
 * Two-sided p value of "the effect is at most `margin`", as a family of intervals has it: one less the greatest confidence
 * whose interval lies above the margin. 1 where none does.
 */
export function pValueByInversion(intervalAt: IntervalAt, margin: number): number {
  const isAbove = (pValue: number) => (intervalAt(1 - pValue)?.[0] ?? Number.NEGATIVE_INFINITY) > margin;
  if (isAbove(least)) return least;
  // by the logarithm: small values are the ones that matter
  let [below, above] = [Math.log(least), Math.log(1 - 1e-9)];
  if (!isAbove(Math.exp(above))) return 1;
  while (above - below > 1e-6) {
    const middle = (below + above) / 2;
    if (isAbove(Math.exp(middle))) above = middle;
    else below = middle;
  }
  return Math.exp(above);
}
