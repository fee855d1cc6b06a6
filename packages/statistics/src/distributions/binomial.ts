import { OctavoError } from "@octavo/protocol";
import { requireCount, requireNumber, requireShare } from "../check.js";
import { incompleteBetaTails } from "./beta.js";
import { binomialTerm } from "./saddle-point.js";

/** Probability of exactly `successes` in `trials` (Loader 2000). Throws `invalid_option`. */
export function binomialPmf(successes: number, trials: number, p: number): number {
  requireCount("successes", successes);
  requireCount("trials", trials);
  requireShare("p", p);
  if (successes > trials) return 0;
  if (p === 0) return successes === 0 ? 1 : 0;
  if (p === 1) return successes === trials ? 1 : 0;
  return trials === 0 ? 1 : binomialTerm(successes, trials, p, 1 - p);
}

/** Probability of at most `successes`; a fraction is rounded down, below 0 nothing is. */
export function binomialCdf(successes: number, trials: number, p: number): number {
  const k = check(successes, trials, p);
  if (k < 0) return 0;
  return k >= trials ? 1 : incompleteBetaTails(k + 1, trials - k, p, 1 - p).upper;
}

/** Probability of at least `successes`; relative precision in the tail. */
export function binomialTail(successes: number, trials: number, p: number): number {
  const k = check(successes, trials, p);
  if (k <= 0) return 1;
  return k > trials ? 0 : incompleteBetaTails(k, trials - k + 1, p, 1 - p).lower;
}

function check(successes: number, trials: number, p: number): number {
  requireNumber("successes", successes);
  requireCount("trials", trials);
  requireShare("p", p);
  return Math.floor(successes);
}

/** The smallest count whose distribution function reaches `level` in [0, 1]. */
export function binomialQuantile(level: number, trials: number, p: number): number {
  requireShare("level", level);
  requireCount("trials", trials);
  requireShare("p", p);
  let low = 0;
  let high = trials;
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if (binomialCdf(middle, trials, p) >= level) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** Binomial coefficient's logarithm. Throws `invalid_option` where k > n. */
export function lnChoose(n: number, k: number): number {
  requireCount("n", n);
  requireCount("k", k);
  if (k > n) throw new OctavoError("invalid_option", `k is ${k}; expected at most n = ${n}.`, { param: "k" });
  if (k === 0 || k === n) return 0;
  return Math.log(binomialTerm(k, n, k / n, 1 - k / n)) - k * Math.log(k / n) - (n - k) * Math.log1p(-k / n);
}
