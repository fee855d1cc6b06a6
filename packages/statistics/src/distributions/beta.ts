import { requireNumber, requireShape, requireShare } from "../check.js";
import { findRoot } from "./find-root.js";
import { nonZero, type Tails } from "./gamma.js";
import { binomialTerm } from "./saddle-point.js";

/**
 * Regularised incomplete beta function I_x(a, b) and its complement, each to nearly machine precision relative to itself:
 * the continued fraction of DLMF 8.17.22 (modified Lentz) on the side of the mean where it converges quickly. `y` is
 * 1 - x, given apart so that x close to 1 loses nothing. a, b > 0.
 */
export function incompleteBetaTails(a: number, b: number, x: number, y: number): Tails {
  if (x <= 0) return { lower: 0, upper: 1 };
  if (y <= 0) return { lower: 1, upper: 0 };
  if (x > (a + 1) / (a + b + 2)) {
    const { lower, upper } = incompleteBetaTails(b, a, y, x);
    return { lower: upper, upper: lower };
  }
  // x^a y^b / (a B(a, b)), as a binomial term: Gamma(a + b) = Gamma(a + b + 1) / (a + b).
  const front = (binomialTerm(a, a + b, x, y) * b) / (a + b);
  const lower = Math.min(1, front * betaFraction(a, b, x));
  return { lower, upper: 1 - lower };
}

function betaFraction(a: number, b: number, x: number): number {
  let c = 1;
  let d = 1 / nonZero(1 - ((a + b) * x) / (a + 1));
  let fraction = d;
  for (let m = 1; m < 1_000_000; m++) {
    const even = (m * (b - m) * x) / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / nonZero(1 + even * d);
    c = nonZero(1 + even / c);
    fraction *= c * d;
    const odd = (-(a + m) * (a + b + m) * x) / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / nonZero(1 + odd * d);
    c = nonZero(1 + odd / c);
    fraction *= c * d;
    if (Math.abs(c * d - 1) < 1e-16) break;
  }
  return fraction;
}

/** I_x(a, b) for x in [0, 1]. Throws `invalid_option` for anything else. */
export function regularizedIncompleteBeta(a: number, b: number, x: number): number {
  requireShape("a", a);
  requireShape("b", b);
  requireShare("x", x);
  return incompleteBetaTails(a, b, x, 1 - x).lower;
}

/** Distribution function of the beta distribution; 0 below 0 and 1 above 1. */
export function betaCdf(x: number, a: number, b: number): number {
  requireNumber("x", x);
  return regularizedIncompleteBeta(a, b, Math.min(1, Math.max(0, x)));
}

/** The x with I_x(a, b) = p, for p in [0, 1]. */
export function betaQuantile(p: number, a: number, b: number): number {
  requireShare("p", p);
  requireShape("a", a);
  requireShape("b", b);
  if (p === 0) return 0;
  if (p === 1) return 1;
  return 1 / (1 + Math.exp(-betaLogitQuantile(p, 1 - p, a, b)));
}

/**
 * ln(x / (1 - x)) of the quantile: nothing is lost at either end. `lower` and `upper` are the probabilities of both tails;
 * the smaller one is matched.
 */
export function betaLogitQuantile(lower: number, upper: number, a: number, b: number): number {
  const target = Math.log(Math.min(lower, upper));
  return findRoot(
    (logit) => {
      const tails = incompleteBetaTails(a, b, 1 / (1 + Math.exp(-logit)), 1 / (1 + Math.exp(logit)));
      return lower <= upper
        ? Math.max(-1e4, Math.log(tails.lower)) - target
        : target - Math.max(-1e4, Math.log(tails.upper));
    },
    Math.log(a / b),
  );
}
