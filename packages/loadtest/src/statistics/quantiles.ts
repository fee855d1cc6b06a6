import { Random } from "./random.js";

/** Observations that belong together (all gaps of one request) and are therefore resampled together. */
export type Clusters = readonly (readonly number[])[];

export interface Estimate {
  readonly value: number;
  /** 95 % percentile-bootstrap interval over requests; undefined below 8 requests, where it would say nothing. */
  readonly interval: readonly [number, number] | undefined;
}

export interface Distribution {
  readonly count: number;
  readonly mean: Estimate;
  readonly p50: Estimate;
  readonly p90: Estimate;
  readonly p95: Estimate;
  readonly p99: Estimate;
  readonly max: number;
}

const levels = [0.5, 0.9, 0.95, 0.99] as const;
const minimumClusters = 8;
const resamples = 300;
/** Above this many observations fewer resamples keep the summary under a second. */
const observationBudget = 2e7;

/**
 * Mean and quantiles with confidence intervals. Gaps of one request are not independent, so the bootstrap draws whole
 * requests (cluster bootstrap, Davison and Hinkley 1997, §3.8): one sort, then each resample is a walk over weights.
 * Quantiles are the smallest observation whose cumulative share reaches the level.
 */
export function summarize(clusters: Clusters, seed = 1): Distribution | undefined {
  const owners: number[] = [];
  const values: number[] = [];
  clusters.forEach((cluster, owner) => {
    for (const value of cluster) {
      owners.push(owner);
      values.push(value);
    }
  });
  if (values.length === 0) return undefined;

  const order = Uint32Array.from(values.keys()).sort((a, b) => (values[a] ?? 0) - (values[b] ?? 0));
  const sorted = Float64Array.from(order, (index) => values[index] ?? 0);
  const ownerOf = Uint32Array.from(order, (index) => owners[index] ?? 0);
  const unit = new Float64Array(clusters.length).fill(1);
  const point = weighted(sorted, ownerOf, unit);

  const rounds = Math.min(resamples, Math.max(50, Math.floor(observationBudget / values.length)));
  const draws: number[][] = [[], [], [], [], []];
  if (clusters.length >= minimumClusters) {
    const random = new Random(seed);
    const weights = new Float64Array(clusters.length);
    for (let round = 0; round < rounds; round++) {
      weights.fill(0);
      for (let i = 0; i < clusters.length; i++) {
        const drawn = random.integer(0, clusters.length - 1);
        weights[drawn] = (weights[drawn] ?? 0) + 1;
      }
      weighted(sorted, ownerOf, weights)?.forEach((value, index) => draws[index]?.push(value));
    }
  }
  const estimate = (index: number): Estimate => ({
    value: point?.[index] ?? Number.NaN,
    interval: intervalOf(draws[index] ?? []),
  });
  return {
    count: values.length,
    mean: estimate(0),
    p50: estimate(1),
    p90: estimate(2),
    p95: estimate(3),
    p99: estimate(4),
    max: sorted.at(-1) ?? Number.NaN,
  };
}

/** [mean, p50, p90, p95, p99] of the sorted values under the owners' weights; undefined when nothing was drawn. */
function weighted(sorted: Float64Array, ownerOf: Uint32Array, weights: Float64Array): number[] | undefined {
  let total = 0;
  let sum = 0;
  for (let i = 0; i < sorted.length; i++) {
    const weight = weights[ownerOf[i] ?? 0] ?? 0;
    total += weight;
    sum += weight * (sorted[i] ?? 0);
  }
  if (total === 0) return undefined;
  const result = [sum / total];
  let seen = 0;
  let level = 0;
  for (let i = 0; i < sorted.length && level < levels.length; i++) {
    seen += weights[ownerOf[i] ?? 0] ?? 0;
    while (level < levels.length && seen >= (levels[level] ?? 1) * total - 1e-9 * total) {
      result.push(sorted[i] ?? Number.NaN);
      level++;
    }
  }
  return result;
}

function intervalOf(draws: readonly number[]): readonly [number, number] | undefined {
  if (draws.length < 40) return undefined;
  const sorted = draws.toSorted((a, b) => a - b);
  const at = (share: number) =>
    sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN;
  return [at(0.025), at(0.975)];
}

/** Wilson's 95 % interval for a proportion (Wilson 1927). */
export function proportion(successes: number, trials: number): Estimate {
  if (trials === 0) return { value: Number.NaN, interval: undefined };
  const z = 1.959964;
  const p = successes / trials;
  const center = (p + (z * z) / (2 * trials)) / (1 + (z * z) / trials);
  const half =
    (z * Math.sqrt((p * (1 - p)) / trials + (z * z) / (4 * trials * trials))) / (1 + (z * z) / trials);
  return { value: p, interval: [Math.max(0, center - half), Math.min(1, center + half)] };
}
