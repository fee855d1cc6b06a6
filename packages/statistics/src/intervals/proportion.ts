import { OctavoError } from "@octavo/protocol";
import { requireCount, requireLevel } from "../check.js";
import { betaQuantile } from "../distributions/beta.js";
import { normalQuantile } from "../distributions/normal.js";
import type { Estimate, Interval } from "../estimate.js";

/** Successes of trials. */
export interface Proportion {
  readonly successes: number;
  readonly trials: number;
}

export function requireProportion(name: string, { successes, trials }: Proportion, minimumTrials = 0): void {
  requireCount(`${name}trials`, trials, minimumTrials);
  requireCount(`${name}successes`, successes);
  if (successes > trials) {
    throw new OctavoError(
      "invalid_option",
      `${name}successes is ${successes} of ${trials} trials; expected no more than these.`,
      { param: `${name}successes` },
    );
  }
}

/**
 * Wilson's score interval for a proportion (1927), without continuity correction. No trials say nothing: [0, 1]. Throws
 * `invalid_option` on negative or fractional counts, more successes than trials, or a confidence outside (0, 1).
 */
export function wilsonInterval(successes: number, trials: number, confidence = 0.95): Interval {
  requireProportion("", { successes, trials });
  requireLevel("confidence", confidence);
  return wilson(successes, trials, -normalQuantile((1 - confidence) / 2));
}

export function wilson(successes: number, trials: number, z: number): Interval {
  if (trials === 0) return [0, 1];
  const p = successes / trials;
  const scale = 1 + (z * z) / trials;
  const center = p + (z * z) / (2 * trials);
  const half = z * Math.sqrt((p * (1 - p)) / trials + (z * z) / (4 * trials * trials));
  return [
    successes === 0 ? 0 : Math.max(0, (center - half) / scale),
    successes === trials ? 1 : Math.min(1, (center + half) / scale),
  ];
}

/** Clopper and Pearson's exact interval (1934): never covers less than it says. No trials: [0, 1]. */
export function clopperPearson(successes: number, trials: number, confidence = 0.95): Interval {
  requireProportion("", { successes, trials });
  requireLevel("confidence", confidence);
  const tail = (1 - confidence) / 2;
  return [
    successes === 0 ? 0 : betaQuantile(tail, successes, trials - successes + 1),
    successes === trials ? 1 : betaQuantile(1 - tail, successes + 1, trials - successes),
  ];
}

/**
 * Difference of two independent proportions, first less second, with the hybrid score interval (Newcombe 1998,
 * "Interval estimation for the difference between independent proportions", method 10). Each needs a trial.
 */
export function newcombeDifference(
  first: Proportion,
  second: Proportion,
  confidence = 0.95,
): Estimate & { readonly interval: Interval } {
  requireProportion("first.", first, 1);
  requireProportion("second.", second, 1);
  requireLevel("confidence", confidence);
  const z = -normalQuantile((1 - confidence) / 2);
  const p = first.successes / first.trials;
  const q = second.successes / second.trials;
  const [firstLow, firstHigh] = wilson(first.successes, first.trials, z);
  const [secondLow, secondHigh] = wilson(second.successes, second.trials, z);
  return {
    estimate: p - q,
    interval: [
      p - q - Math.hypot(p - firstLow, secondHigh - q),
      p - q + Math.hypot(firstHigh - p, q - secondLow),
    ],
    confidence,
  };
}
