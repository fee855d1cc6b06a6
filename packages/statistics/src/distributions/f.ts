import { requireNumber, requireShape, requireShare } from "../check.js";
import { betaLogitQuantile, incompleteBetaTails } from "./beta.js";

function tails(x: number, above: number, below: number): { lower: number; upper: number } {
  if (x === Infinity) return { lower: 1, upper: 0 };
  const sum = above * x + below;
  return incompleteBetaTails(above / 2, below / 2, (above * x) / sum, below / sum);
}

/** Probability of exceeding x; relative precision in the tail. */
export function fTail(x: number, numeratorDegrees: number, denominatorDegrees: number): number {
  return x <= 0 ? 1 : tails(x, numeratorDegrees, denominatorDegrees).upper;
}

/** Distribution function of Fisher's F. */
export function fCdf(x: number, numeratorDegrees: number, denominatorDegrees: number): number {
  requireNumber("x", x);
  requireShape("numeratorDegrees", numeratorDegrees);
  requireShape("denominatorDegrees", denominatorDegrees);
  return x <= 0 ? 0 : tails(x, numeratorDegrees, denominatorDegrees).lower;
}

/** The x with fCdf(x) = p; infinite for 1. */
export function fQuantile(p: number, numeratorDegrees: number, denominatorDegrees: number): number {
  requireShare("p", p);
  requireShape("numeratorDegrees", numeratorDegrees);
  requireShape("denominatorDegrees", denominatorDegrees);
  if (p === 0) return 0;
  if (p === 1) return Infinity;
  const logit = betaLogitQuantile(p, 1 - p, numeratorDegrees / 2, denominatorDegrees / 2);
  return (denominatorDegrees / numeratorDegrees) * Math.exp(logit);
}
