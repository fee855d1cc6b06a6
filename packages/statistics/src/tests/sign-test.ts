import { requireCount } from "../check.js";
import { binomialTail } from "../distributions/binomial.js";

/**
 * Probability of at least `losses` of `losses + gains` coin tosses coming up losses: the one-sided exact sign test, which
 * on paired right and wrong answers is McNemar's exact test (McNemar 1947). Throws `invalid_option` on anything but counts.
 */
export function signTest(losses: number, gains: number): number {
  requireCount("losses", losses);
  requireCount("gains", gains);
  return binomialTail(losses, losses + gains, 0.5);
}
