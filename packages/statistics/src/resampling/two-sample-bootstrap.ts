import { requireCount, requireLevel, requireSample } from "../check.js";
import type { Estimate, Interval } from "../estimate.js";
import { requestsForQuantileBound } from "../intervals/quantile.js";
import { Random } from "../random.js";
import { minimumClusters, percentileInterval } from "./resamples.js";
import { type Clusters, type ClusterStatistic, WeightedClusters } from "./weighted-clusters.js";

export interface ClusterBootstrapOptions {
  readonly confidence?: number;
  readonly resamples?: number;
  readonly seed?: number;
}

/** A statistic of each side and their ratio or difference. */
export interface TwoSampleEstimate extends Omit<Estimate, "estimate"> {
  /** First over second, or first less second; undefined for a ratio to 0. */
  readonly estimate: number | undefined;
  readonly first: number;
  readonly second: number;
}

/** Work of one call, in observations walked over: it bounds the time at some seconds, whatever the sizes. */
const observationBudget = 4e8;

/**
 * Ratio or difference of a statistic of two independent samples of clusters, such as the p99 of gaps during a burst over the
 * p99 without, with an expanded percentile interval of resampled clusters (cluster bootstrap, Davison and Hinkley 1997, section 3.8).
 * The interval is undefined with fewer than 8 clusters on a side, or fewer observations than a finite bound at that quantile
 * needs. Throws `invalid_option` on a side without observations and values that are not finite.
 */
export function twoSampleBootstrap(
  first: Clusters,
  second: Clusters,
  options: ClusterBootstrapOptions & {
    readonly statistic: ClusterStatistic;
    readonly compare: "ratio" | "difference";
  },
): TwoSampleEstimate {
  const { statistic, compare, confidence = 0.95, resamples = 1000, seed = 1 } = options;
  requireLevel("confidence", confidence);
  requireCount("resamples", resamples, 1);
  const sides = [new Side("first", first, statistic), new Side("second", second, statistic)] as const;
  const combine = (a: number, b: number) => (compare === "difference" ? a - b : b === 0 ? undefined : a / b);
  const [a, b] = sides.map((side) => side.value()) as [number, number];
  const answer = (interval: Interval | undefined) => ({
    estimate: combine(a, b),
    interval,
    confidence,
    first: a,
    second: b,
  });
  if (!sides.every((side) => side.isEnough(confidence))) return answer(undefined);
  const size = sides[0].size + sides[1].size;
  const rounds = Math.max(200, Math.min(resamples, Math.floor(observationBudget / size)));
  const random = new Random(seed);
  const draws = Array.from(
    { length: rounds },
    () => combine(sides[0].draw(random), sides[1].draw(random)) ?? Number.NaN,
  );
  const numClusters = Math.min(sides[0].numClusters, sides[1].numClusters);
  return answer(
    percentileInterval(draws, confidence, { numClusters, degreesOfFreedom: 2 * numClusters - 2 }),
  );
}

/** A statistic of clusters with its expanded percentile interval; see `twoSampleBootstrap` for when there is none. */
export function clusterBootstrap(
  clusters: Clusters,
  options: ClusterBootstrapOptions & { readonly statistic: ClusterStatistic },
): Estimate {
  const { statistic, confidence = 0.95, resamples = 1000, seed = 1 } = options;
  requireLevel("confidence", confidence);
  requireCount("resamples", resamples, 1);
  const side = new Side("clusters", clusters, statistic);
  const estimate = side.value();
  if (!side.isEnough(confidence)) return { estimate, interval: undefined, confidence };
  const rounds = Math.max(200, Math.min(resamples, Math.floor(observationBudget / side.size)));
  const random = new Random(seed);
  const draws = Array.from({ length: rounds }, () => side.draw(random));
  return { estimate, interval: percentileInterval(draws, confidence, side), confidence };
}

/** One sample's clusters, with what its statistic needs. */
class Side {
  readonly size: number;
  readonly numClusters: number;
  readonly #clusters: WeightedClusters;
  readonly #statistics: readonly [ClusterStatistic];

  constructor(name: string, clusters: Clusters, statistic: ClusterStatistic) {
    if (statistic.kind === "quantile") requireLevel("statistic.level", statistic.level);
    this.#clusters = new WeightedClusters(clusters.filter((cluster) => cluster.length > 0));
    this.size = this.#clusters.numObservations;
    this.numClusters = this.#clusters.numClusters;
    requireSample(name, this.#clusters.sorted);
    this.#statistics = [statistic];
  }

  isEnough(confidence: number): boolean {
    const [statistic] = this.#statistics;
    if (this.numClusters < minimumClusters) return false;
    if (statistic.kind !== "quantile") return true;
    return this.size >= requestsForQuantileBound(statistic.level, (1 + confidence) / 2);
  }

  value(): number {
    return this.#clusters.evaluate(this.#statistics)[0]!;
  }

  draw(random: Random): number {
    this.#clusters.resample(random);
    return this.value();
  }
}
