import { OctavoError } from "@octavo/protocol";
import { requireCount, requirePositive, requireSameLength } from "../check.js";
import { binomialPmf, binomialTail, lnChoose } from "../distributions/binomial.js";
import { chiSquareTail } from "../distributions/chi-square.js";
import type { Estimate } from "../estimate.js";
import { clopperPearson, type Proportion, requireProportion } from "../intervals/proportion.js";
import { sum } from "../sample.js";
import type { TestResult } from "./test-result.js";

export interface ChiSquareResult extends TestResult {
  readonly degreesOfFreedom: number;
}

/**
 * Pearson's chi-square test that two lists of counts, category by category, come from one distribution. Categories that
 * neither has are left out; with fewer than two left there is no p value. Approximate: expected counts below 5 make it
 * unreliable. Throws `invalid_option` on anything but counts, lists of unequal length, or an empty side.
 */
export function chiSquareHomogeneity(first: readonly number[], second: readonly number[]): ChiSquareResult {
  requireSameLength("first", first.length, "second", second.length);
  for (const [name, counts] of [
    ["first", first],
    ["second", second],
  ] as const) {
    for (const [index, count] of counts.entries()) requireCount(`${name}[${index}]`, count);
    if (sum(counts) === 0) {
      throw new OctavoError("invalid_option", `${name} has no observations.`, { param: name });
    }
  }
  const all = sum(first) + sum(second);
  const share = sum(first) / all;
  let statistic = 0;
  let categories = 0;
  for (const [index, a] of first.entries()) {
    const b = second[index]!;
    if (a + b === 0) continue;
    categories++;
    statistic += (a - share * (a + b)) ** 2 / (share * (1 - share) * (a + b));
  }
  const degreesOfFreedom = categories - 1;
  if (degreesOfFreedom === 0) return { statistic: undefined, pValue: undefined, degreesOfFreedom };
  return { statistic, pValue: chiSquareTail(statistic, degreesOfFreedom), degreesOfFreedom };
}

/**
 * Fisher's exact test (1935) of two independent proportions, two-sided by adding all tables as likely or less. Throws
 * `invalid_option` on anything but counts.
 */
export function fisherExact(first: Proportion, second: Proportion): { readonly pValue: number } {
  requireProportion("first.", first);
  requireProportion("second.", second);
  const successes = first.successes + second.successes;
  const all = first.trials + second.trials;
  const least = Math.max(0, successes - second.trials);
  const most = Math.min(successes, first.trials);
  const log = (k: number) => lnChoose(first.trials, k) + lnChoose(second.trials, successes - k);
  const base = lnChoose(all, successes);
  const seen = log(first.successes);
  let pValue = 0;
  // Tables as likely in truth may differ in the last digits of their logarithms.
  for (let k = least; k <= most; k++) if (log(k) <= seen + 1e-7) pValue += Math.exp(log(k) - base);
  return { pValue: Math.min(1, pValue) };
}

/** Events seen over an exposure, such as seconds. */
export interface EventRate {
  readonly count: number;
  readonly exposure: number;
}

/**
 * Ratio of two Poisson rates, first over second, by the exact conditional test (Przyborowski and Wilenski 1940) and its
 * interval. Without an event in the second there is no ratio (the estimate is undefined and the interval ends at infinity);
 * without any event nothing. Throws `invalid_option` on anything but counts and exposures above 0.
 */
export function poissonRateRatio(
  first: EventRate,
  second: EventRate,
  confidence = 0.95,
): Omit<Estimate, "estimate"> & {
  readonly estimate: number | undefined;
  readonly pValue: number | undefined;
} {
  requireCount("first.count", first.count);
  requireCount("second.count", second.count);
  requirePositive("first.exposure", first.exposure);
  requirePositive("second.exposure", second.exposure);
  const events = first.count + second.count;
  if (events === 0) return { estimate: undefined, interval: undefined, confidence, pValue: undefined };
  const scale = second.exposure / first.exposure;
  const [low, high] = clopperPearson(first.count, events, confidence);
  const share = first.exposure / (first.exposure + second.exposure);
  const more = binomialTail(first.count, events, share);
  const fewer = 1 - more + binomialPmf(first.count, events, share);
  return {
    estimate: second.count === 0 ? undefined : (first.count / second.count) * scale,
    interval: [(low / (1 - low)) * scale, high === 1 ? Infinity : (high / (1 - high)) * scale],
    confidence,
    pValue: Math.min(1, 2 * Math.min(more, fewer)),
  };
}

/**
 * Fisher's index of dispersion (1950): the variance of counts over their mean, 1 for a Poisson process, above 1 for bursts;
 * `pValue` is of the hypothesis that arrivals are Poisson, against bursts. Fewer than two counts, or no events, have none.
 */
export function dispersionTest(counts: readonly number[]): TestResult & {
  readonly index: number | undefined;
} {
  for (const [index, count] of counts.entries()) requireCount(`counts[${index}]`, count);
  const total = sum(counts);
  if (counts.length < 2 || total === 0) return { index: undefined, statistic: undefined, pValue: undefined };
  const center = total / counts.length;
  const statistic = sum(counts.map((count) => (count - center) ** 2)) / center;
  return {
    index: statistic / (counts.length - 1),
    statistic,
    pValue: chiSquareTail(statistic, counts.length - 1),
  };
}
