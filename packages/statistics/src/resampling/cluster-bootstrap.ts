import { requireCount, requireLevel, requireSameLength, requireSample } from "../check.js";
import { normalCdf, normalQuantile } from "../distributions/normal.js";
import type { Interval } from "../estimate.js";
import { Random } from "../random.js";
import { minimumClusters } from "./resamples.js";

/** One conversation's sums, of which a statistic is a function. All clusters have as many. */
export type ClusterSums = readonly number[];

/** A function of summed sums, such as the ratio of two of them; not finite where it is undefined. */
export type Statistic = (sums: readonly number[]) => number;

/**
 * Bootstrap over conversations: tokens of one conversation depend on each other, so whole conversations are drawn with
 * replacement (cluster bootstrap, Davison and Hinkley 1997, section 3.8). The same draws serve every statistic. Intervals
 * are bias-corrected and accelerated (BCa, Efron 1987), since divergences are skewed: a few tokens carry most of them.
 */
export class ClusterBootstrap {
  readonly #numClusters: number;
  readonly #resamples: number;
  readonly #seed: number;

  constructor(numClusters: number, resamples: number, seed: number) {
    requireCount("numClusters", numClusters);
    requireCount("resamples", resamples);
    this.#numClusters = numClusters;
    this.#resamples = resamples;
    this.#seed = seed;
  }

  /**
   * The statistics' distributions over resamples; clusters that lack what is summed have zeros. Throws `invalid_option` on
   * another number of clusters, unequal numbers of sums, or sums that are not finite.
   */
  sample(clusters: readonly ClusterSums[], statistics: readonly Statistic[]): Bootstrapped[] {
    const width = clusters[0]?.length ?? 0;
    requireSameLength("numClusters", this.#numClusters, "clusters", clusters.length);
    for (const [index, sums] of clusters.entries()) {
      requireSameLength("clusters[0]", width, `clusters[${index}]`, sums.length);
      requireSample(`clusters[${index}]`, sums, 0);
    }
    const total = sum(clusters, width);
    const numPresent = clusters.filter((sums) => sums.some((value) => value !== 0)).length;
    const draws: number[][] = statistics.map(() => []);
    const sums = Array.from({ length: width }, () => 0);
    // The same seed gives the same draws again, for every set of statistics; keeping them could take gigabytes.
    const random = new Random(this.#seed);
    const resamples = numPresent < minimumClusters ? 0 : this.#resamples;
    for (let resample = 0; resample < resamples; resample++) {
      sums.fill(0);
      for (let draw = 0; draw < this.#numClusters; draw++) {
        const own = clusters[random.integer(0, this.#numClusters - 1)]!;
        for (let i = 0; i < width; i++) sums[i] = sums[i]! + own[i]!;
      }
      for (const [index, statistic] of statistics.entries()) {
        const value = statistic(sums);
        if (Number.isFinite(value)) draws[index]!.push(value);
      }
    }
    return statistics.map(
      (statistic, index) =>
        new Bootstrapped(
          statistic(total),
          draws[index]!.toSorted((a, b) => a - b),
          acceleration(clusters, total, statistic),
        ),
    );
  }
}

/** A statistic with its resampled values. */
export class Bootstrapped {
  readonly value: number;
  readonly #sorted: readonly number[];
  readonly #acceleration: number;
  readonly #bias: number;

  constructor(value: number, sorted: readonly number[], skewness: number) {
    this.value = value;
    this.#sorted = sorted;
    this.#acceleration = skewness;
    const below = sorted.filter((draw) => draw < value).length;
    const equal = sorted.filter((draw) => draw === value).length;
    const share = sorted.length === 0 ? 0.5 : (below + equal / 2) / sorted.length;
    const edge = 0.5 / Math.max(1, sorted.length);
    this.#bias = normalQuantile(Math.min(1 - edge, Math.max(edge, share)));
  }

  /** Two-sided; undefined with too few conversations. */
  interval(confidence = 0.95): Interval | undefined {
    const low = this.bound((1 - confidence) / 2);
    const high = this.bound((1 + confidence) / 2);
    return low === undefined || high === undefined ? undefined : [low, high];
  }

  /** The value below which the truth lies with this probability. */
  bound(level: number): number | undefined {
    requireLevel("level", level);
    if (this.#sorted.length < 100) return undefined;
    const z = this.#bias + normalQuantile(level);
    const corrected = normalCdf(this.#bias + z / (1 - this.#acceleration * z));
    const index = Math.floor(corrected * this.#sorted.length);
    return this.#sorted[Math.min(this.#sorted.length - 1, Math.max(0, index))];
  }
}

function sum(clusters: readonly ClusterSums[], width: number): number[] {
  const total = Array.from({ length: width }, () => 0);
  for (const sums of clusters) for (let i = 0; i < width; i++) total[i] = total[i]! + sums[i]!;
  return total;
}

/** From the jackknife: the skewness of what leaving one conversation out does. */
function acceleration(
  clusters: readonly ClusterSums[],
  total: readonly number[],
  statistic: Statistic,
): number {
  const left = clusters
    .map((sums) => statistic(total.map((value, i) => value - (sums[i] ?? 0))))
    .filter((value) => Number.isFinite(value));
  const mean = left.reduce((all, value) => all + value, 0) / left.length;
  let squares = 0;
  let cubes = 0;
  for (const value of left) {
    squares += (mean - value) ** 2;
    cubes += (mean - value) ** 3;
  }
  return squares === 0 ? 0 : cubes / (6 * squares ** 1.5);
}
