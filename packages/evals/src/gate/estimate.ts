import {
  clusterBootstrap,
  meanInterval,
  newcombeDifference,
  pairedDifference,
  pairedTTest,
  quantile,
  quantileBound,
  requestsForQuantileBound,
  twoSampleBootstrap,
  welchTTest,
  wilsonInterval,
} from "@octavo/statistics";
import type { MeasuredColumn, HealthExpectation, Measure } from "./expectation.js";
import type { Measurements } from "./measurements.js";

/** A figure, and its interval at any confidence. */
export interface Estimated {
  readonly estimate: number | undefined;
  readonly numObservations: number;
  /** As reports name it. */
  readonly method: string;
  /** Ends that the data cannot bound are infinite; undefined where nothing can be said. */
  interval(confidence: number): readonly [number, number] | undefined;
  /** Why there is no estimate or no interval. */
  readonly problem: string | undefined;
}

type Clusters = readonly (readonly number[])[];
type Statistic = Parameters<typeof clusterBootstrap>[1]["statistic"];

const resamples = 2000;

/** The figure that an expectation is about. */
export function estimate(
  expectation: HealthExpectation,
  measurements: Measurements,
  { seed }: { readonly seed: number },
): Estimated {
  const { measure, compare, target = "candidate", method } = expectation;
  if (measure.kind === "throughput") return throughput(expectation, measurements, target);
  const isRate = measure.kind === "pass_rate" || measure.kind === "error_rate";
  const values = columnOf(measurements, target, measure);
  const { clusters } = measurements;
  if (compare === "none") {
    const present = values.filter((value) => !Number.isNaN(value));
    if (present.length === 0) return nothing("no answer has this figure");
    if (measurements.hasClusters && method !== "welch")
      return bootstrapped(
        clustered(values, clusters),
        statisticOf(measure),
        seed,
        isRate ? [0, 1] : undefined,
      );
    if (isRate) return proportion(present);
    return measure.kind === "percentile" ? percentile(present, measure.level) : mean(present);
  }
  const before = columnOf(measurements, "baseline", measure);
  const pairs = values.flatMap((value, row) => {
    const other = before[row] ?? Number.NaN;
    return Number.isNaN(value) || Number.isNaN(other) ? [] : [{ value, other, cluster: clusters[row], row }];
  });
  const independent = method === "welch" || method === "bootstrap" || pairs.length === 0;
  if (compare === "delta" && measure.kind !== "percentile" && !independent) {
    if (measurements.hasClusters) {
      const differences = values.map((value, row) => value - (before[row] ?? Number.NaN));
      const range = isRate ? ([-1, 1] as const) : undefined;
      return bootstrapped(clustered(differences, clusters), { kind: "mean" }, seed, range);
    }
    if (isRate) return pairedProportions(pairs);
    return pairedMeans(pairs.map(({ value, other }) => value - other));
  }
  const first = values.filter((value) => !Number.isNaN(value));
  const second = before.filter((value) => !Number.isNaN(value));
  if (first.length === 0 || second.length === 0) return nothing("no answer has this figure on both sides");
  if (compare === "delta" && isRate && method !== "bootstrap") return independentProportions(first, second);
  if (compare === "delta" && measure.kind === "mean" && method !== "bootstrap") return welch(first, second);
  return twoSamples(
    clustered(values, clusters),
    clustered(before, clusters),
    statisticOf(measure),
    compare,
    seed,
  );
}

function columnOf(measurements: Measurements, target: string, measure: Measure): readonly number[] {
  switch (measure.kind) {
    case "pass_rate":
      return measurements.passesOfAsked(target, measure.evaluator);
    case "error_rate":
      return measurements.failures(target, measure.code);
    case "mean":
    case "percentile":
      return measurements.column(target, measure.of satisfies MeasuredColumn);
    case "throughput":
      return [];
  }
}

function statisticOf(measure: Measure): Statistic {
  return measure.kind === "percentile" ? { kind: "quantile", level: measure.level } : { kind: "mean" };
}

/** Values of rows that belong together, without those that were not measured. */
function clustered(values: readonly number[], clusters: readonly (string | undefined)[]): Clusters {
  const groups = new Map<string | number, number[]>();
  values.forEach((value, row) => {
    if (Number.isNaN(value)) return;
    const key = clusters[row] ?? row;
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [value]);
    else group.push(value);
  });
  return [...groups.values()];
}

function proportion(values: readonly number[]): Estimated {
  const successes = values.filter((value) => value === 1).length;
  return {
    estimate: successes / values.length,
    numObservations: values.length,
    method: "Wilson's interval",
    interval: (confidence) => wilsonInterval(successes, values.length, confidence),
    problem: undefined,
  };
}

function mean(values: readonly number[]): Estimated {
  return {
    estimate: meanInterval(values).estimate,
    numObservations: values.length,
    method: "Student's t interval",
    interval: (confidence) => meanInterval(values, confidence).interval,
    problem: isUniform(values) ? uniform : undefined,
  };
}

function percentile(values: readonly number[], level: number): Estimated {
  const needed = requestsForQuantileBound(level, 0.975);
  return {
    estimate: quantile(values, level),
    numObservations: values.length,
    method: "order statistics",
    interval: (confidence) => [
      quantileBound(values, level, (1 - confidence) / 2) ?? Number.NEGATIVE_INFINITY,
      quantileBound(values, level, (1 + confidence) / 2) ?? Number.POSITIVE_INFINITY,
    ],
    problem: values.length < needed ? `an upper bound on this percentile takes ${needed} answers` : undefined,
  };
}

/** @param range of one cluster's figure, where it is bounded: then clusters that are all alike have an interval as well */
function bootstrapped(
  clusters: Clusters,
  statistic: Statistic,
  seed: number,
  range: readonly [number, number] | undefined,
): Estimated {
  const numObservations = clusters.reduce((sum, { length }) => sum + length, 0);
  if (numObservations === 0) return nothing("no answer has this figure");
  if (areAlike(clusters, statistic)) return alike(clusters, statistic, range);
  const at = (confidence: number): ReturnType<typeof clusterBootstrap> =>
    clusterBootstrap(clusters, { statistic, confidence, resamples, seed });
  return {
    estimate: at(0.95).estimate,
    numObservations,
    method: "bootstrap of clusters",
    interval: (confidence) => at(confidence).interval,
    problem: clusters.length < 8 ? `${clusters.length} clusters are too few for an interval` : undefined,
  };
}

/**
 * Drawing from equal clusters would give certainty. Where a figure is bounded, each cluster counts as one case that went as all
 * the others did: the share of clusters that go another way is at most the upper end of Wilson's interval of none among them,
 * and those go as far as they can. For clusters that all pass, or all fail, this is Wilson's interval of the clusters.
 */
function alike(
  clusters: Clusters,
  statistic: Statistic,
  range: readonly [number, number] | undefined,
): Estimated {
  const numObservations = clusters.reduce((sum, { length }) => sum + length, 0);
  const value = statistic.kind === "mean" ? averageOf(clusters[0] ?? []) : (clusters[0]?.[0] ?? Number.NaN);
  return {
    estimate: value,
    numObservations,
    method: range === undefined ? "none" : "Wilson's interval of clusters",
    interval: (confidence) => {
      if (range === undefined) return undefined;
      const [, share] = wilsonInterval(0, clusters.length, confidence);
      return [value - share * (value - range[0]), value + share * (range[1] - value)];
    },
    problem: range === undefined ? uniform : undefined,
  };
}

/** Whether every draw of clusters would give the same figure. */
function areAlike(clusters: Clusters, statistic: Statistic): boolean {
  const [first = []] = clusters;
  if (statistic.kind !== "mean") return clusters.every((own) => own.every((value) => value === first[0]));
  const one = averageOf(first);
  return clusters.every((own) => Math.abs(averageOf(own) - one) <= 1e-12 * Math.max(1, Math.abs(one)));
}

function averageOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

function pairedProportions(pairs: readonly { readonly value: number; readonly other: number }[]): Estimated {
  const count = (now: number, then: number): number =>
    pairs.filter(({ value, other }) => value === now && other === then).length;
  const table = { both: count(1, 1), lost: count(0, 1), gained: count(1, 0), neither: count(0, 0) };
  return {
    estimate: (table.gained - table.lost) / pairs.length,
    numObservations: pairs.length,
    method: "pairs, Newcombe's method 10",
    interval: (confidence) => pairedDifference(table, confidence).interval,
    problem: undefined,
  };
}

function pairedMeans(differences: readonly number[]): Estimated {
  return {
    estimate: pairedTTest(differences).estimate,
    numObservations: differences.length,
    method: "paired t",
    interval: (confidence) => pairedTTest(differences, { confidence }).interval,
    problem: isUniform(differences) ? uniform : undefined,
  };
}

function independentProportions(first: readonly number[], second: readonly number[]): Estimated {
  const of = (values: readonly number[]): { successes: number; trials: number } => ({
    successes: values.filter((value) => value === 1).length,
    trials: values.length,
  });
  return {
    estimate: newcombeDifference(of(first), of(second)).estimate,
    numObservations: first.length + second.length,
    method: "independent, Newcombe's hybrid score",
    interval: (confidence) => newcombeDifference(of(first), of(second), confidence).interval,
    problem: undefined,
  };
}

function welch(first: readonly number[], second: readonly number[]): Estimated {
  return {
    estimate: welchTTest(first, second).estimate,
    numObservations: first.length + second.length,
    method: "Welch's t",
    interval: (confidence) => welchTTest(first, second, { confidence }).interval,
    problem: isUniform(first) && isUniform(second) ? uniform : undefined,
  };
}

function twoSamples(
  first: Clusters,
  second: Clusters,
  statistic: Statistic,
  compare: HealthExpectation["compare"],
  seed: number,
): Estimated {
  const at = (confidence: number): ReturnType<typeof twoSampleBootstrap> =>
    twoSampleBootstrap(first, second, {
      statistic,
      compare: compare === "ratio" ? "ratio" : "difference",
      confidence,
      resamples,
      seed,
    });
  const { estimate: value, interval } = at(0.95);
  const isCertain = areAlike(first, statistic) && areAlike(second, statistic);
  return {
    estimate: value,
    numObservations: [...first, ...second].reduce((sum, { length }) => sum + length, 0),
    method: "bootstrap of both sides",
    interval: (confidence) => (isCertain ? undefined : at(confidence).interval),
    problem:
      value === undefined
        ? "the baseline's figure is 0"
        : isCertain
          ? uniform
          : interval === undefined
            ? "too few answers for an interval of this figure"
            : undefined,
  };
}

/** From the blocks in which targets took turns: one figure a block, independent of each other but for drift. */
function throughput({ compare }: HealthExpectation, measurements: Measurements, target: string): Estimated {
  const own = measurements.throughput(target);
  const rateOf = (blocks: typeof own): number =>
    blocks.reduce((sum, { tokens }) => sum + tokens, 0) /
    blocks.reduce((sum, { seconds }) => sum + seconds, 0);
  if (own.length === 0) return nothing("no answer has this figure");
  const rates = own.map(({ tokens, seconds }) => tokens / seconds);
  if (compare === "none")
    return {
      estimate: rateOf(own),
      numObservations: own.length,
      method: "batch means, t interval",
      interval: (confidence) => meanInterval(rates, confidence).interval,
      problem: own.length < 2 ? "one block of answers has no interval" : undefined,
    };
  const before = measurements.throughput("baseline");
  if (before.length === 0) return nothing("the baseline has no answers");
  const beforeRates = before.map(({ tokens, seconds }) => tokens / seconds);
  if (compare === "delta") return { ...welch(rates, beforeRates), method: "batch means, Welch's t" };
  const logs = (values: readonly number[]): readonly number[] =>
    values.filter((value) => value > 0).map(Math.log);
  const [first, second] = [logs(rates), logs(beforeRates)];
  if (first.length === 0 || second.length === 0) return nothing("a side gave no tokens");
  return {
    estimate: rateOf(own) / rateOf(before),
    numObservations: own.length + before.length,
    method: "batch means, Welch's t of logarithms",
    interval: (confidence) => {
      const { interval } = welchTTest(first, second, { confidence });
      return interval === undefined ? undefined : [Math.exp(interval[0]), Math.exp(interval[1])];
    },
    problem: own.length < 2 || before.length < 2 ? "one block of answers has no interval" : undefined,
  };
}

const uniform = "every value is the same, so nothing is known of how they vary: say `by estimate`";

function isUniform(values: readonly number[]): boolean {
  return values.every((value) => value === values[0]);
}

function nothing(problem: string): Estimated {
  return { estimate: undefined, numObservations: 0, method: "none", interval: () => undefined, problem };
}
