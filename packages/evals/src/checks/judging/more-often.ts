import { type Interval, newcombeDifference } from "@octavo/statistics";
import { type EffectLimits, marginEffect, type TestedEffect } from "./verdicts.js";

const least = 1e-12;

/**
 * Two-sided p value of "the effect is at most `margin`", as a family of intervals has it: one less the greatest confidence
 * whose interval lies above the margin. 1 where none does.
 */
function pValueByInversion(intervalAt: (confidence: number) => Interval | undefined, margin: number): number {
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

interface Share {
  readonly successes: number;
  readonly trials: number;
}

/** How much more often something happens in `observed` than in `reference`: Newcombe's interval for two proportions. */
export function moreOften(
  name: string,
  observed: Share,
  reference: Share,
  limits: EffectLimits,
): TestedEffect {
  const at = (confidence: number) => newcombeDifference(observed, reference, confidence);
  const { estimate, interval } = at(1 - limits.alpha);
  const pValue = pValueByInversion((confidence) => at(confidence).interval, limits.margin);
  return marginEffect(
    { name, method: "Newcombe's interval for two proportions", estimate, interval, pValue },
    limits,
  );
}
