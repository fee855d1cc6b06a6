import { OctavoError } from "@octavo/protocol";
import { mostShape, requireCount, requireNumber } from "../check.js";
import { incompleteGammaTails } from "./gamma.js";
import { poissonTerm } from "./saddle-point.js";

function requireMean(mean: number): void {
  if (!(mean >= 0 && mean <= mostShape)) {
    throw new OctavoError("invalid_option", `mean is ${mean}; expected a number from 0 to ${mostShape}.`, {
      param: "mean",
    });
  }
}

/** Probability of exactly `count` (Loader 2000). Throws `invalid_option`. */
export function poissonPmf(count: number, mean: number): number {
  requireCount("count", count);
  requireMean(mean);
  if (mean === 0) return count === 0 ? 1 : 0;
  return poissonTerm(count, mean);
}

/** Probability of at most `count`; a fraction is rounded down. */
export function poissonCdf(count: number, mean: number): number {
  requireNumber("count", count);
  requireMean(mean);
  if (count < 0) return 0;
  return count > 2 * mostShape ? 1 : incompleteGammaTails(Math.floor(count) + 1, mean).upper;
}

/** Probability of at least `count`; relative precision in the tail. */
export function poissonTail(count: number, mean: number): number {
  requireNumber("count", count);
  requireMean(mean);
  const k = Math.ceil(count);
  if (k <= 0) return 1;
  return k > 2 * mostShape ? 0 : incompleteGammaTails(k, mean).lower;
}
