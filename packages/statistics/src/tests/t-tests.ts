import { requireLevel, requireSample } from "../check.js";
import { studentTQuantile, studentTTail } from "../distributions/student-t.js";
import type { Alternative, Estimate } from "../estimate.js";
import { mean, variance } from "../sample.js";
import type { TestResult } from "./test-result.js";

export interface TTestResult extends TestResult, Estimate {
  readonly degreesOfFreedom: number | undefined;
}

export interface TTestOptions {
  readonly alternative?: Alternative;
  readonly confidence?: number;
}

/**
 * Welch's t test (1947) of the means of two independent samples; `estimate` is the first mean less the second. Where both
 * have no variance, or one of them a single value, there is no statistic, p value or interval. Throws `invalid_option` on
 * empty samples and values that are not finite.
 */
export function welchTTest(
  first: readonly number[],
  second: readonly number[],
  options: TTestOptions = {},
): TTestResult {
  requireSample("first", first);
  requireSample("second", second);
  const estimate = mean(first) - mean(second);
  const a = (variance(first) ?? Number.NaN) / first.length;
  const b = (variance(second) ?? Number.NaN) / second.length;
  const degrees = (a + b) ** 2 / (a ** 2 / (first.length - 1) + b ** 2 / (second.length - 1));
  return tTest(estimate, Math.sqrt(a + b), degrees, options);
}

/**
 * Student's t test (1908) that the mean of differences is 0. A single difference, or differences that are all equal, have no
 * statistic, p value or interval. Throws `invalid_option` on an empty sample and values that are not finite.
 */
export function pairedTTest(differences: readonly number[], options: TTestOptions = {}): TTestResult {
  requireSample("differences", differences);
  const error = Math.sqrt((variance(differences) ?? Number.NaN) / differences.length);
  return tTest(mean(differences), error, differences.length - 1, options);
}

function tTest(
  estimate: number,
  standardError: number,
  degrees: number,
  { alternative = "two-sided", confidence = 0.95 }: TTestOptions,
): TTestResult {
  requireLevel("confidence", confidence);
  if (!(standardError > 0) || !(degrees > 0)) {
    return {
      estimate,
      interval: undefined,
      confidence,
      statistic: undefined,
      pValue: undefined,
      degreesOfFreedom: undefined,
    };
  }
  const statistic = estimate / standardError;
  const half = -studentTQuantile((1 - confidence) / 2, degrees) * standardError;
  return {
    estimate,
    interval: [estimate - half, estimate + half],
    confidence,
    statistic,
    pValue: tailProbability(statistic, alternative, (t) => studentTTail(t, degrees)),
    degreesOfFreedom: degrees,
  };
}

/** From a symmetric statistic; `tail` is the probability of exceeding its size. */
export function tailProbability(
  statistic: number,
  alternative: Alternative,
  tail: (size: number) => number,
): number {
  const beyond = tail(Math.abs(statistic));
  if (alternative === "two-sided") return Math.min(1, 2 * beyond);
  return statistic > 0 === (alternative === "greater") ? beyond : 1 - beyond;
}
