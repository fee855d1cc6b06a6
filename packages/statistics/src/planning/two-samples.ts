import { OctavoError } from "@octavo/protocol";
import { requireFinite, requireLevel, requirePositive, requireShare } from "../check.js";
import { normalQuantile } from "../distributions/normal.js";
import { type Errors, quantiles } from "./paired.js";

/**
 * Trials in each of two independent groups for a two-sided test (alpha 0.05, power 0.8 unless given) to find the difference of
 * two proportions (Fleiss, Levin and Paik 2003, equation 4.14, without continuity correction). Throws `invalid_option` where
 * they are equal.
 */
export function sampleSizeTwoProportions({
  first,
  second,
  alpha = 0.05,
  power = 0.8,
}: Errors & { readonly first: number; readonly second: number }): number {
  requireShare("first", first);
  requireShare("second", second);
  requireDifferent(first, second);
  requireLevel("alpha", alpha);
  requireLevel("power", power);
  const middle = (first + second) / 2;
  const root =
    normalQuantile(1 - alpha / 2) * Math.sqrt(2 * middle * (1 - middle)) +
    normalQuantile(power) * Math.sqrt(first * (1 - first) + second * (1 - second));
  return Math.max(1, Math.ceil((root / (first - second)) ** 2));
}

/**
 * Values in each of two independent groups to find a difference of means with a common standard deviation:
 * n = 2 (z(1 - alpha/2) + z(power))^2 (sd / difference)^2, plus z(1 - alpha/2)^2 / 4 for the t distribution (Guenther 1981).
 */
export function sampleSizeTwoMeans({
  difference,
  standardDeviation,
  alpha = 0.05,
  power = 0.8,
}: Errors & { readonly difference: number; readonly standardDeviation: number }): number {
  requireFinite("difference", difference);
  requireDifferent(difference, 0);
  requirePositive("standardDeviation", standardDeviation);
  const z = quantiles(alpha / 2, power);
  const correction = normalQuantile(1 - alpha / 2) ** 2 / 4;
  return Math.max(2, Math.ceil(2 * (z * (standardDeviation / difference)) ** 2 + correction));
}

function requireDifferent(first: number, second: number): void {
  if (first !== second) return;
  throw new OctavoError("invalid_option", `Both are ${first}; no sample finds what is not there.`, {
    param: "second",
  });
}
