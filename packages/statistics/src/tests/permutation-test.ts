import { requireCount, requireSameLength, requireSample } from "../check.js";
import type { Alternative } from "../estimate.js";
import { Random } from "../random.js";
import { mean } from "../sample.js";

export interface PermutationOptions {
  readonly alternative?: Alternative;
  readonly resamples?: number;
  readonly seed?: number;
}

export interface PermutationResult {
  /** What was seen. */
  readonly statistic: number;
  /** (1 + as extreme) / (1 + resamples), which never claims too much (Phipson and Smyth 2010). */
  readonly pValue: number;
}

/**
 * Permutation test of two independent samples: how often a random division of the pooled values gives as extreme a statistic.
 * The statistic is the difference of means unless given; it must be finite. Two-sided means extreme in size. Throws
 * `invalid_option` on empty samples, values that are not finite, or no resamples.
 */
export function permutationTest(
  first: readonly number[],
  second: readonly number[],
  options: PermutationOptions & {
    readonly statistic?: (first: readonly number[], second: readonly number[]) => number;
  } = {},
): PermutationResult {
  requireSample("first", first);
  requireSample("second", second);
  const { statistic = (a, b) => mean(a) - mean(b) } = options;
  const pooled = [...first, ...second];
  return resample(statistic(first, second), options, (random) => {
    const shuffled = random.shuffle(pooled);
    return statistic(shuffled.slice(0, first.length), shuffled.slice(first.length));
  });
}

/**
 * Paired permutation test: differences keep their sizes and get random signs, all differences of one cluster the same. Tests
 * that they are symmetric around 0, by their mean. `clusters` names each difference's cluster. Throws `invalid_option` as
 * above.
 */
export function signFlipTest(
  differences: readonly number[],
  options: PermutationOptions & { readonly clusters?: readonly (string | number)[] } = {},
): PermutationResult {
  requireSample("differences", differences);
  const clusters = options.clusters ?? [...differences.keys()];
  requireSameLength("differences", differences.length, "clusters", clusters.length);
  const sums = new Map<string | number, number>();
  for (const [index, difference] of differences.entries()) {
    const cluster = clusters[index]!;
    sums.set(cluster, (sums.get(cluster) ?? 0) + difference);
  }
  const totals = [...sums.values()];
  const seen = totals.reduce((all, value) => all + value, 0);
  return resample(seen / differences.length, options, (random) => {
    let sum = 0;
    for (const value of totals) sum += random.uniform() < 0.5 ? value : -value;
    return sum / differences.length;
  });
}

function resample(
  seen: number,
  { alternative = "two-sided", resamples = 9999, seed = 1 }: PermutationOptions,
  draw: (random: Random) => number,
): PermutationResult {
  requireCount("resamples", resamples, 1);
  const random = new Random(seed);
  const size = (value: number) =>
    alternative === "two-sided" ? Math.abs(value) : alternative === "greater" ? value : -value;
  // Sums in another order differ in their last digits; what is equal must count as equal.
  const limit = size(seen) - 1e-12 * Math.abs(seen);
  let extreme = 0;
  for (let round = 0; round < resamples; round++) if (size(draw(random)) >= limit) extreme++;
  return { statistic: seen, pValue: (1 + extreme) / (1 + resamples) };
}
