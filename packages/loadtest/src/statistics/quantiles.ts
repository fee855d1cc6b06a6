import { type Clusters, minimumClusters, Random, WeightedClusters, wilsonInterval } from "@octavo/statistics";

export interface LoadEstimate {
  readonly value: number;
  /** 95 % percentile-bootstrap interval over requests; undefined below 8 requests, where it would say nothing. */
  readonly interval: readonly [number, number] | undefined;
}

export interface Distribution {
  readonly count: number;
  readonly mean: LoadEstimate;
  readonly p50: LoadEstimate;
  readonly p90: LoadEstimate;
  readonly p95: LoadEstimate;
  readonly p99: LoadEstimate;
  readonly max: number;
}

const statistics = [
  { kind: "mean" },
  { kind: "quantile", level: 0.5 },
  { kind: "quantile", level: 0.9 },
  { kind: "quantile", level: 0.95 },
  { kind: "quantile", level: 0.99 },
] as const;
const resamples = 300;
/** Above this many observations fewer resamples keep the summary under a second. */
const observationBudget = 2e7;

/**
 * Mean and quantiles with confidence intervals. Gaps of one request are not independent, so the bootstrap draws whole
 * requests (cluster bootstrap, Davison and Hinkley 1997, §3.8): one sort, then each resample is a walk over weights.
 * Quantiles are the smallest observation whose cumulative share reaches the level.
 */
export function summarize(clusters: Clusters, seed = 1): Distribution | undefined {
  const weighted = new WeightedClusters(clusters);
  const count = weighted.numObservations;
  if (count === 0) return undefined;
  const point = weighted.evaluate(statistics);
  const rounds = Math.min(resamples, Math.max(50, Math.floor(observationBudget / count)));
  const draws: number[][] = statistics.map(() => []);
  if (clusters.length >= minimumClusters) {
    const random = new Random(seed);
    for (let round = 0; round < rounds; round++) {
      weighted.resample(random);
      for (const [index, value] of weighted.evaluate(statistics).entries()) {
        if (Number.isFinite(value)) draws[index]!.push(value);
      }
    }
  }
  const estimate = (index: number): LoadEstimate => ({
    value: point[index]!,
    interval: intervalOf(draws[index]!),
  });
  return {
    count,
    mean: estimate(0),
    p50: estimate(1),
    p90: estimate(2),
    p95: estimate(3),
    p99: estimate(4),
    max: weighted.sorted.at(-1)!,
  };
}

function intervalOf(draws: readonly number[]): readonly [number, number] | undefined {
  if (draws.length < 40) return undefined;
  const sorted = draws.toSorted((a, b) => a - b);
  const at = (share: number) =>
    sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN;
  return [at(0.025), at(0.975)];
}

/** Wilson's 95 % interval for a proportion (Wilson 1927). */
export function proportion(successes: number, trials: number): LoadEstimate {
  if (trials === 0) return { value: Number.NaN, interval: undefined };
  return { value: successes / trials, interval: wilsonInterval(successes, trials) };
}
