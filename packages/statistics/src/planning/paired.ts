import { OctavoError } from "@octavo/protocol";
import { requireCount, requireFinite, requireLevel, requireShare } from "../check.js";
import { normalQuantile } from "../distributions/normal.js";
import { correction, restrictedShareLost, skewnessOf } from "../intervals/tango.js";

export interface Errors {
  /** Chance of a wrong alarm. */
  readonly alpha?: number;
  /** Chance of finding what is there. */
  readonly power?: number;
}

/**
 * Pairs for a two-sided test (alpha 0.05, power 0.8 unless given) to find a true difference between shares of right answers
 * when a share `discordance` of cases is answered differently: n = (z(1 - alpha/2) + z(power))^2 (f - d^2) / d^2 (Miettinen
 * 1968, variance under the alternative). Throws `invalid_option` where |difference| is 0 or above the discordance.
 */
export function pairsForDifference({
  discordance,
  difference,
  alpha = 0.05,
  power = 0.8,
}: Errors & { readonly discordance: number; readonly difference: number }): number {
  requireDiscordance(discordance, difference);
  if (difference === 0) {
    throw new OctavoError("invalid_option", "difference is 0; no number of pairs finds what is not there.", {
      param: "difference",
    });
  }
  const z = quantiles(alpha / 2, power);
  return Math.max(1, Math.ceil((z * z * (discordance - difference ** 2)) / difference ** 2));
}

/**
 * Pairs for `mcnemarNonInferiority` (alpha 0.025, power 0.8 unless given) to pass when a share `discordance` of cases is answered
 * differently and the true difference, candidate less baseline, is `difference` (0 unless given): Nam (1997, "Establishing
 * equivalence of two treatments and sample size requirements in matched-pairs design"), with that test's corrections. Throws
 * `invalid_option` where the true difference is at or beyond the margin.
 */
export function pairsForNonInferiority({
  discordance,
  margin,
  difference = 0,
  alpha = 0.025,
  power = 0.8,
}: Errors & {
  readonly discordance: number;
  readonly margin: number;
  readonly difference?: number;
}): number {
  requireLevel("margin", margin);
  requireLevel("alpha", alpha);
  requireLevel("power", power);
  requireDiscordance(discordance, difference);
  const distance = margin + difference;
  if (distance <= 0) {
    throw new OctavoError(
      "invalid_option",
      `A true difference of ${difference} is not within the margin of ${margin}; no number of pairs shows that it is.`,
      { param: "difference" },
    );
  }
  // At the margin the test supposes more discordant pairs than there are: its variance is not that of the truth.
  const supposedLost = restrictedShareLost(
    1,
    (discordance - difference) / 2,
    (discordance + difference) / 2,
    -margin,
  );
  const supposedVariance = 2 * supposedLost - margin * (1 + margin);
  const z = -normalQuantile(alpha);
  const spread =
    z * Math.sqrt(supposedVariance) + normalQuantile(power) * Math.sqrt(discordance - difference ** 2);
  // n distance - correction = sqrt(n) spread
  const shortened = correction(skewnessOf(supposedLost, -margin), z);
  const root = (spread + Math.sqrt(Math.max(0, spread ** 2 + 4 * distance * shortened))) / (2 * distance);
  return Math.max(1, Math.ceil(root ** 2));
}

/** The difference that so many pairs find with this power: the inverse of `pairsForDifference`. */
export function detectableDifference({
  pairs,
  discordance,
  alpha = 0.05,
  power = 0.8,
}: Errors & { readonly pairs: number; readonly discordance: number }): number {
  requireCount("pairs", pairs, 1);
  requireDiscordance(discordance, 0);
  const z = quantiles(alpha / 2, power);
  return z * Math.sqrt(discordance / (pairs + z * z));
}

export function quantiles(alpha: number, power: number): number {
  requireLevel("alpha", alpha);
  requireLevel("power", power);
  return normalQuantile(1 - alpha) + normalQuantile(power);
}

function requireDiscordance(discordance: number, difference: number): void {
  requireShare("discordance", discordance);
  requireFinite("difference", difference);
  if (Math.abs(difference) > discordance) {
    throw new OctavoError(
      "invalid_option",
      `difference is ${difference} with a discordance of ${discordance}; it cannot be larger in size.`,
      { param: "difference" },
    );
  }
}
