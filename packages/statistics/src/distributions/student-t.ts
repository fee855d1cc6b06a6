import { requireNumber, requireShape, requireShare } from "../check.js";
import { betaLogitQuantile, incompleteBetaTails } from "./beta.js";

/** Probability that a Student t variable exceeds |t|; relative precision far into the tail. */
export function studentTTail(t: number, degreesOfFreedom: number): number {
  const square = t * t;
  if (square === Infinity) return 0;
  const sum = degreesOfFreedom + square;
  return incompleteBetaTails(degreesOfFreedom / 2, 0.5, degreesOfFreedom / sum, square / sum).lower / 2;
}

/** Distribution function of Student's t; degrees of freedom may be fractional (Welch). */
export function studentTCdf(t: number, degreesOfFreedom: number): number {
  requireNumber("t", t);
  requireShape("degreesOfFreedom", degreesOfFreedom);
  return t > 0 ? 1 - studentTTail(t, degreesOfFreedom) : studentTTail(t, degreesOfFreedom);
}

/** The t with studentTCdf(t) = p; infinite for 0 and 1. */
export function studentTQuantile(p: number, degreesOfFreedom: number): number {
  requireShare("p", p);
  requireShape("degreesOfFreedom", degreesOfFreedom);
  if (p === 0) return -Infinity;
  if (p === 1) return Infinity;
  if (p === 0.5) return 0;
  const tail = Math.min(p, 1 - p);
  // Both tails together are I_x(df / 2, 1 / 2) at x = df / (df + t^2), so t^2 / df = (1 - x) / x.
  const logit = betaLogitQuantile(2 * tail, 1 - 2 * tail, degreesOfFreedom / 2, 0.5);
  const size = Math.sqrt(degreesOfFreedom) * Math.exp(-logit / 2);
  return p < 0.5 ? -size : size;
}
