import { OctavoError } from "@octavo/protocol";
import { requireLevel, requireSample, requireScale } from "../check.js";
import { chiSquareTail } from "../distributions/chi-square.js";
import { normalQuantile, normalTail } from "../distributions/normal.js";
import { studentTQuantile, studentTTail } from "../distributions/student-t.js";
import type { Estimate } from "../estimate.js";
import { sum } from "../sample.js";

/** What one unit (a replica, a day) shows, with the variance of that estimate. */
export interface UnitEffect {
  readonly effect: number;
  /** Squared standard error; above 0. */
  readonly variance: number;
}

export interface Heterogeneity {
  /** Cochran's Q: chi-square distributed with the degrees of freedom if all units share one effect. */
  readonly statistic: number;
  readonly degreesOfFreedom: number;
  /** Undefined with a single unit. */
  readonly pValue: number | undefined;
  /** Share of the variation that is between units (I squared, Higgins and Thompson 2002), in [0, 1]. */
  readonly inconsistency: number;
}

/** Cochran's test (1954) that units share one effect. Throws `invalid_option` without a unit or on variances not above 0. */
export function cochranQ(units: readonly UnitEffect[]): Heterogeneity {
  requireUnits(units);
  const weights = units.map(({ variance }) => 1 / variance);
  const pooled = weightedMean(units, weights);
  const statistic = sum(units.map(({ effect }, i) => weights[i]! * (effect - pooled) ** 2));
  const degreesOfFreedom = units.length - 1;
  return {
    statistic,
    degreesOfFreedom,
    pValue: degreesOfFreedom === 0 ? undefined : chiSquareTail(statistic, degreesOfFreedom),
    inconsistency: statistic === 0 ? 0 : Math.max(0, (statistic - degreesOfFreedom) / statistic),
  };
}

export interface RandomEffects extends Estimate {
  /** Mean effect over the population of units. */
  readonly estimate: number;
  readonly standardError: number;
  readonly pValue: number | undefined;
  /** Variance of the units' true effects. */
  readonly betweenVariance: number;
  readonly heterogeneity: Heterogeneity;
  /** Each unit's effect, drawn towards the mean by as much as its own data is weak (empirical Bayes). */
  readonly units: readonly { readonly effect: number; readonly standardError: number }[];
}

/**
 * Random-effects mean of units by DerSimonian and Laird (1986). The interval is normal, or Student's with the scaled variance
 * of Hartung and Knapp (2001), which holds with few units (`hartung-knapp`, undefined with one unit; its variance is never let
 * below the normal one). Throws `invalid_option` without a unit, or on variances not above 0.
 */
export function randomEffects(
  units: readonly UnitEffect[],
  {
    confidence = 0.95,
    method = "hartung-knapp",
  }: { readonly confidence?: number; readonly method?: "normal" | "hartung-knapp" } = {},
): RandomEffects {
  requireLevel("confidence", confidence);
  const heterogeneity = cochranQ(units);
  const fixed = units.map(({ variance }) => 1 / variance);
  const total = sum(fixed);
  // total - (sum of squares) / total, without cancellation where one weight is almost all.
  let products = 0;
  let before = 0;
  for (const weight of fixed) {
    products += weight * before;
    before += weight;
  }
  const scale = (2 * products) / total;
  const excess = heterogeneity.statistic - heterogeneity.degreesOfFreedom;
  const betweenVariance = units.length === 1 ? 0 : Math.max(0, excess / scale);
  const weights = units.map(({ variance }) => 1 / (variance + betweenVariance));
  const estimate = weightedMean(units, weights);
  const plainError = Math.sqrt(1 / sum(weights));
  const degrees = units.length - 1;
  const isKnapp = method === "hartung-knapp";
  const scatter = sum(units.map(({ effect }, i) => weights[i]! * (effect - estimate) ** 2));
  const standardError =
    isKnapp && degrees > 0 ? plainError * Math.sqrt(Math.max(1, scatter / degrees)) : plainError;
  const statistic = Math.abs(estimate / standardError);
  const shrunken = units.map(({ effect, variance }) => {
    const own = betweenVariance / (betweenVariance + variance);
    return {
      effect: own * effect + (1 - own) * estimate,
      standardError: Math.sqrt(own * variance + (1 - own) ** 2 * standardError ** 2),
    };
  });
  const common = { estimate, standardError, confidence, betweenVariance, heterogeneity, units: shrunken };
  if (isKnapp && degrees === 0) return { ...common, interval: undefined, pValue: undefined };
  const tail = (1 - confidence) / 2;
  const half = -standardError * (isKnapp ? studentTQuantile(tail, degrees) : normalQuantile(tail));
  return {
    ...common,
    interval: [estimate - half, estimate + half],
    pValue: 2 * (isKnapp ? studentTTail(statistic, degrees) : normalTail(statistic)),
  };
}

function weightedMean(units: readonly UnitEffect[], weights: readonly number[]): number {
  return sum(units.map(({ effect }, i) => weights[i]! * effect)) / sum(weights);
}

function requireUnits(units: readonly UnitEffect[]): void {
  if (units.length === 0) {
    throw new OctavoError("invalid_option", "units is empty; at least 1 is needed.", { param: "units" });
  }
  const effects = units.map(({ effect }) => effect);
  requireSample("effects", effects);
  for (const [index, { variance }] of units.entries()) requireScale(`units[${index}].variance`, variance);
}
