import type { Random } from "../random.js";
import { sum } from "../sample.js";

/** Observations that belong together (all gaps of one request) and are therefore drawn together. */
export type Clusters = readonly (readonly number[])[];

/** What is asked of observations: their mean, a quantile by its level (the smallest that reaches it), or the share above a limit. */
export type ClusterStatistic =
  | { readonly kind: "mean" }
  | { readonly kind: "quantile"; readonly level: number }
  | { readonly kind: "share-above"; readonly limit: number };

/** Clusters whose observations are sorted once: a resample changes only how often each cluster counts. */
export class WeightedClusters {
  readonly numClusters: number;
  /** All observations, ascending. */
  readonly sorted: Float64Array;
  /** Cluster of each of these. */
  readonly #ownerOf: Uint32Array;
  /** By cluster. */
  readonly #weights: Float64Array;
  readonly #sizes: Float64Array;
  readonly #sums: Float64Array;

  /** Every cluster counts once until `resample`. */
  constructor(clusters: Clusters) {
    const owners: number[] = [];
    const values: number[] = [];
    clusters.forEach((cluster, owner) => {
      for (const value of cluster) {
        owners.push(owner);
        values.push(value);
      }
    });
    const order = Uint32Array.from(values.keys()).sort((a, b) => values[a]! - values[b]!);
    this.numClusters = clusters.length;
    this.sorted = Float64Array.from(order, (index) => values[index]!);
    this.#ownerOf = Uint32Array.from(order, (index) => owners[index]!);
    this.#weights = new Float64Array(clusters.length).fill(1);
    this.#sizes = Float64Array.from(clusters, (cluster) => cluster.length);
    this.#sums = Float64Array.from(clusters, (cluster) => sum(cluster));
  }

  get numObservations(): number {
    return this.sorted.length;
  }

  /** As many clusters as there are, drawn with replacement. */
  resample(random: Random): void {
    this.#weights.fill(0);
    for (let i = 0; i < this.numClusters; i++) {
      this.#weights[random.integer(0, this.numClusters - 1)]! += 1;
    }
  }

  /** NaN for each where what was drawn has no observation. */
  evaluate(statistics: readonly ClusterStatistic[]): number[] {
    let total = 0;
    let all = 0;
    for (let cluster = 0; cluster < this.numClusters; cluster++) {
      total += this.#weights[cluster]! * this.#sizes[cluster]!;
      all += this.#weights[cluster]! * this.#sums[cluster]!;
    }
    return statistics.map((statistic) => {
      if (total === 0) return Number.NaN;
      if (statistic.kind === "mean") return all / total;
      return statistic.kind === "quantile"
        ? this.#quantile(statistic.level, total)
        : this.#massAbove(statistic.limit) / total;
    });
  }

  /** Walks from the nearer end: of a p99, over a hundredth of the observations. */
  #quantile(level: number, total: number): number {
    // Weights are whole, but a share of their total such as 0.95 * 20 may come out a rounding error above.
    const border = level * total * (1 - 1e-12);
    let mass = 0;
    if (level <= 0.5) {
      for (let i = 0; i < this.sorted.length; i++) {
        mass += this.#weights[this.#ownerOf[i]!]!;
        if (mass > 0 && mass >= border) return this.sorted[i]!;
      }
      return this.sorted.at(-1)!;
    }
    for (let i = this.sorted.length - 1; i > 0; i--) {
      mass += this.#weights[this.#ownerOf[i]!]!;
      // What lies below this observation does not reach the level.
      if (total - mass < border) return this.sorted[i]!;
    }
    return this.sorted[0]!;
  }

  #massAbove(limit: number): number {
    let mass = 0;
    for (let i = this.sorted.length - 1; i >= 0 && this.sorted[i]! > limit; i--) {
      mass += this.#weights[this.#ownerOf[i]!]!;
    }
    return mass;
  }
}
