import { requireLevel, requireSample } from "../check.js";
import { studentTQuantile } from "../distributions/student-t.js";
import type { Estimate } from "../estimate.js";
import { mean, variance } from "../sample.js";

/**
 * Mean with Student's interval (1908), for independent values. A single value has no interval; values that are all equal
 * have none either: that they vary by nothing is not known from seeing no variation. Throws `invalid_option` when empty.
 */
export function meanInterval(values: readonly number[], confidence = 0.95): Estimate {
  requireSample("values", values);
  requireLevel("confidence", confidence);
  const estimate = mean(values);
  const spread = variance(values);
  if (spread === undefined || spread === 0) return { estimate, interval: undefined, confidence };
  const half = -studentTQuantile((1 - confidence) / 2, values.length - 1) * Math.sqrt(spread / values.length);
  return { estimate, interval: [estimate - half, estimate + half], confidence };
}
