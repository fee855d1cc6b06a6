import { OctavoError } from "@octavo/protocol";
import { requireCount, requireLevel, requireSample } from "../check.js";
import type { Estimate } from "../estimate.js";
import { Random } from "../random.js";
import { mean } from "../sample.js";
import { percentileInterval, requireStatistic } from "./resamples.js";

export interface BlockBootstrapOptions {
  /** Of a series in the order of time; the mean unless given. */
  readonly statistic?: (values: readonly number[]) => number;
  readonly confidence?: number;
  readonly resamples?: number;
  readonly seed?: number;
}

/**
 * Interval of a statistic of a series whose neighbours depend on each other: circular block bootstrap (Politis and Romano
 * 1992). Blocks of `blockLength` neighbours are drawn with replacement, the series seen as a circle; a block should be longer
 * than the dependence, see `blockLengthFor`. Expanded percentile interval; undefined with fewer than 8 blocks. Throws `invalid_option`
 * on an empty series, values that are not finite, or a statistic that is not.
 */
export function blockBootstrap(
  values: readonly number[],
  blockLength: number,
  { statistic = mean, confidence = 0.95, resamples = 1000, seed = 1 }: BlockBootstrapOptions = {},
): Estimate {
  requireSample("values", values);
  requireCount("blockLength", blockLength, 1);
  requireCount("resamples", resamples, 1);
  requireLevel("confidence", confidence);
  const n = values.length;
  if (blockLength > n) {
    throw new OctavoError("invalid_option", `blockLength is ${blockLength} for ${n} values.`, {
      param: "blockLength",
    });
  }
  const estimate = statistic(values);
  requireStatistic(estimate);
  const numBlocks = Math.ceil(n / blockLength);
  if (numBlocks < 8) return { estimate, interval: undefined, confidence };
  const random = new Random(seed);
  const drawn = Array.from(values);
  const draws = Array.from({ length: resamples }, () => {
    for (let filled = 0; filled < n;) {
      const start = random.integer(0, n - 1);
      for (let i = 0; i < blockLength && filled < n; i++) drawn[filled++] = values[(start + i) % n]!;
    }
    return statistic(drawn);
  });
  return {
    estimate,
    interval: percentileInterval(draws, confidence, { numClusters: numBlocks }),
    confidence,
  };
}

/**
 * Block length for the mean of a series, from its correlations (Politis and White 2004, as corrected by Patton, Politis and
 * White 2009, circular blocks): 1 for independent values. At most an eighth of the series.
 */
export function blockLengthFor(values: readonly number[]): number {
  requireSample("values", values);
  const n = values.length;
  const center = mean(values);
  const covariance = (lag: number): number => {
    let sum = 0;
    for (let i = 0; i + lag < n; i++) sum += (values[i]! - center) * (values[i + lag]! - center);
    return sum / n;
  };
  const variance = covariance(0);
  const mostLags = Math.min(n - 1, Math.ceil(Math.sqrt(n)) + Math.max(5, Math.ceil(Math.log10(n))));
  if (n < 16 || variance === 0) return 1;
  const run = Math.max(5, Math.ceil(Math.sqrt(Math.log10(n))));
  const limit = 2 * Math.sqrt(Math.log10(n) / n);
  const covariances = Array.from({ length: mostLags + 1 }, (_, lag) => covariance(lag));
  // The last lag before `run` insignificant ones in a row.
  let last = 0;
  for (let lag = 1; lag <= mostLags && lag - last <= run; lag++) {
    if (Math.abs(covariances[lag]! / variance) > limit) last = lag;
  }
  if (last === 0) return 1;
  const bandwidth = Math.min(2 * last, mostLags);
  let weighted = 0;
  let spectrum = covariances[0]!;
  for (let lag = 1; lag <= bandwidth; lag++) {
    const share = lag / bandwidth;
    const taper = share <= 0.5 ? 1 : 2 * (1 - share);
    weighted += 2 * taper * lag * covariances[lag]!;
    spectrum += 2 * taper * covariances[lag]!;
  }
  if (!(spectrum > 0)) return 1;
  const length = ((2 * weighted ** 2) / ((4 / 3) * spectrum ** 2)) ** (1 / 3) * n ** (1 / 3);
  return Math.max(1, Math.min(Math.floor(n / 8), Math.round(length)));
}
