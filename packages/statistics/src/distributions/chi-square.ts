import { requireNumber, requireShape, requireShare } from "../check.js";
import { findRoot } from "./find-root.js";
import { incompleteGammaTails } from "./gamma.js";

/** Probability of exceeding x; relative precision in the tail. */
export function chiSquareTail(x: number, degreesOfFreedom: number): number {
  return x <= 0 ? 1 : incompleteGammaTails(degreesOfFreedom / 2, x / 2).upper;
}

/** Distribution function of the chi-square distribution. */
export function chiSquareCdf(x: number, degreesOfFreedom: number): number {
  requireNumber("x", x);
  requireShape("degreesOfFreedom", degreesOfFreedom);
  return x <= 0 ? 0 : incompleteGammaTails(degreesOfFreedom / 2, x / 2).lower;
}

/** The x with chiSquareCdf(x) = p; infinite for 1. */
export function chiSquareQuantile(p: number, degreesOfFreedom: number): number {
  requireShare("p", p);
  requireShape("degreesOfFreedom", degreesOfFreedom);
  if (p === 0) return 0;
  if (p === 1) return Infinity;
  const isLower = p <= 0.5;
  const target = Math.log(isLower ? p : 1 - p);
  const shape = degreesOfFreedom / 2;
  const logHalf = findRoot((log) => {
    const { lower, upper } = incompleteGammaTails(shape, Math.exp(log));
    return isLower ? Math.max(-1e4, Math.log(lower)) - target : target - Math.max(-1e4, Math.log(upper));
  }, Math.log(shape));
  return 2 * Math.exp(logHalf);
}
