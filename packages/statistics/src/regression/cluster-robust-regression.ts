import { OctavoError } from "@octavo/protocol";
import { requireLevel, requireSameLength, requireSample } from "../check.js";
import { studentTQuantile, studentTTail } from "../distributions/student-t.js";
import type { Interval } from "../estimate.js";

export interface Coefficient {
  readonly name: string;
  readonly estimate: number;
  readonly standardError: number;
  readonly interval: Interval;
  /** Two-sided, that it is 0. */
  readonly pValue: number;
}

export interface ClusterRegression {
  /** The intercept first, then as named. */
  readonly coefficients: readonly Coefficient[];
  readonly confidence: number;
  readonly numClusters: number;
  readonly degreesOfFreedom: number;
  /** Share of the outcomes' variation that is explained; undefined if outcomes do not vary. */
  readonly determination: number | undefined;
}

export interface RegressionInput {
  readonly outcomes: readonly number[];
  /** Each outcome's predictors, without the intercept. */
  readonly predictors: readonly (readonly number[])[];
  readonly names: readonly string[];
  /** Which outcomes depend on each other, such as a conversation's. */
  readonly clusters: readonly (string | number)[];
}

/**
 * Least squares with an intercept, and standard errors that allow outcomes of one cluster to depend on each other: CR1, the
 * sandwich of cluster sums times G / (G - 1) (n - 1) / (n - k), with t of G - 1 degrees of freedom (Cameron and Miller 2015).
 * Needs two clusters, more outcomes than coefficients, and predictors that are not combinations of each other; throws
 * `invalid_option` otherwise. With few clusters (under some 30) the errors are somewhat small.
 */
export function clusterRobustRegression(input: RegressionInput, confidence = 0.95): ClusterRegression {
  requireLevel("confidence", confidence);
  const { outcomes, clusters } = input;
  const rows = designOf(input);
  const n = rows.length;
  const k = input.names.length + 1;
  const inverse = invert(crossProducts(rows, k), input.names);
  const moments = Array.from({ length: k }, (_, a) =>
    rows.reduce((sum, row, i) => sum + row[a]! * outcomes[i]!, 0),
  );
  const estimates = multiply(inverse, moments);
  const residuals = rows.map(
    (row, i) => outcomes[i]! - row.reduce((sum, x, a) => sum + x * estimates[a]!, 0),
  );
  const scores = new Map<string | number, number[]>();
  for (const [i, cluster] of clusters.entries()) {
    const score = scores.get(cluster) ?? Array.from({ length: k }, () => 0);
    for (let a = 0; a < k; a++) score[a]! += rows[i]![a]! * residuals[i]!;
    scores.set(cluster, score);
  }
  const numClusters = scores.size;
  if (numClusters < 2) refuse("clusters", `There is ${numClusters} cluster; at least 2 are needed.`);
  const correction = (numClusters / (numClusters - 1)) * ((n - 1) / (n - k));
  // The diagonal of inverse * (sum of score score') * inverse.
  const influences = [...scores.values()].map((score) => multiply(inverse, score));
  const degreesOfFreedom = numClusters - 1;
  const factor = -studentTQuantile((1 - confidence) / 2, degreesOfFreedom);
  const center = outcomes.reduce((sum, value) => sum + value, 0) / n;
  const total = outcomes.reduce((sum, value) => sum + (value - center) ** 2, 0);
  const left = residuals.reduce((sum, value) => sum + value ** 2, 0);
  return {
    coefficients: estimates.map((estimate, a) => {
      const squares = influences.reduce((sum, influence) => sum + influence[a]! ** 2, 0);
      const standardError = Math.sqrt(correction * squares);
      const statistic = standardError === 0 ? Infinity : Math.abs(estimate) / standardError;
      return {
        name: a === 0 ? "intercept" : input.names[a - 1]!,
        estimate,
        standardError,
        interval: [estimate - factor * standardError, estimate + factor * standardError],
        pValue: estimate === 0 ? 1 : Math.min(1, 2 * studentTTail(statistic, degreesOfFreedom)),
      };
    }),
    confidence,
    numClusters,
    degreesOfFreedom,
    determination: total === 0 ? undefined : 1 - left / total,
  };
}

function designOf({ outcomes, predictors, names, clusters }: RegressionInput): number[][] {
  requireSample("outcomes", outcomes);
  requireSameLength("outcomes", outcomes.length, "predictors", predictors.length);
  requireSameLength("outcomes", outcomes.length, "clusters", clusters.length);
  const k = names.length + 1;
  if (outcomes.length <= k) {
    refuse("outcomes", `There are ${outcomes.length} outcomes for ${k} coefficients; more are needed.`);
  }
  return predictors.map((row, i) => {
    requireSameLength("names", names.length, `predictors[${i}]`, row.length);
    requireSample(`predictors[${i}]`, row, 0);
    return [1, ...row];
  });
}

function crossProducts(rows: readonly (readonly number[])[], k: number): number[][] {
  const products = Array.from({ length: k }, () => Array.from({ length: k }, () => 0));
  for (const row of rows) {
    for (let a = 0; a < k; a++) for (let b = 0; b < k; b++) products[a]![b]! += row[a]! * row[b]!;
  }
  return products;
}

/** Gauss-Jordan elimination with pivoting, the matrix scaled so that its diagonal is 1. */
function invert(matrix: readonly (readonly number[])[], names: readonly string[]): number[][] {
  const k = matrix.length;
  const scale = matrix.map((row, a) => 1 / Math.sqrt(row[a]! || 1));
  const work = matrix.map((row, a) => [
    ...row.map((value, b) => value * scale[a]! * scale[b]!),
    ...row.map((_, b) => (a === b ? 1 : 0)),
  ]);
  for (let column = 0; column < k; column++) {
    let pivot = column;
    for (let row = column + 1; row < k; row++) {
      if (Math.abs(work[row]![column]!) > Math.abs(work[pivot]![column]!)) pivot = row;
    }
    const size = work[pivot]![column]!;
    if (Math.abs(size) < 1e-11) {
      const name = column === 0 ? "intercept" : names[column - 1]!;
      refuse("predictors", `"${name}" does not vary, or is a combination of the others; leave it out.`);
    }
    [work[column], work[pivot]] = [work[pivot]!, work[column]!];
    const top = work[column]!.map((value) => value / size);
    work[column] = top;
    for (let row = 0; row < k; row++) {
      const factor = work[row]![column]!;
      if (row !== column && factor !== 0) work[row] = work[row]!.map((value, b) => value - factor * top[b]!);
    }
  }
  return work.map((row, a) => row.slice(k).map((value, b) => value * scale[a]! * scale[b]!));
}

function multiply(matrix: readonly (readonly number[])[], vector: readonly number[]): number[] {
  return matrix.map((row) => row.reduce((sum, value, b) => sum + value * vector[b]!, 0));
}

function refuse(param: string, message: string): never {
  throw new OctavoError("invalid_option", message, { param });
}
