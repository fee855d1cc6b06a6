import { OctavoError } from "@octavo/protocol";
import { requireLevel, requireSameLength, requireSample, requireWeights } from "../check.js";

/**
 * First Wasserstein distance of two samples: the area between their cumulative shares, in the values' unit. Throws
 * `invalid_option` on empty samples and values that are not finite.
 */
export function wasserstein(first: readonly number[], second: readonly number[]): number {
  requireSample("first", first);
  requireSample("second", second);
  const a = first.toSorted((x, y) => x - y);
  const b = second.toSorted((x, y) => x - y);
  let area = 0;
  let previous = Math.min(a[0]!, b[0]!);
  for (let i = 0, j = 0; i < a.length || j < b.length;) {
    const value = Math.min(a[i] ?? Infinity, b[j] ?? Infinity);
    area += Math.abs(i / a.length - j / b.length) * (value - previous);
    while (i < a.length && a[i] === value) i++;
    while (j < b.length && b[j] === value) j++;
    previous = value;
  }
  return area;
}

/**
 * First Wasserstein distance of two samples that were counted: how much of each has each value. Throws `invalid_option` on
 * lists of unequal length, values that do not rise, negative weights, or an empty side.
 */
export function wassersteinOfCounts(
  values: readonly number[],
  first: readonly number[],
  second: readonly number[],
): number {
  requireSample("values", values);
  requireSameLength("values", values.length, "first", first.length);
  const [p, q] = sharesOf(first, second);
  let [area, below, other] = [0, 0, 0];
  for (const [index, value] of values.slice(0, -1).entries()) {
    const next = values[index + 1]!;
    if (next <= value)
      throw new OctavoError("invalid_option", `values must rise: ${next} follows ${value}.`, {
        param: "values",
      });
    below += p[index]!;
    other += q[index]!;
    area += Math.abs(below - other) * (next - value);
  }
  return area;
}

/**
 * Jensen-Shannon distance of two lists of counts, category by category: the root of the divergence, with logarithms to base 2
 * in [0, 1], or natural ones (`base: "e"`, in nats, as SciPy and Evidently have it). Throws `invalid_option` on lists of
 * unequal length, negative weights, or an empty side.
 */
export function jensenShannon(
  first: readonly number[],
  second: readonly number[],
  base: "2" | "e" = "2",
): number {
  const [p, q] = sharesOf(first, second);
  let nats = 0;
  for (const [index, a] of p.entries()) {
    const b = q[index]!;
    const middle = (a + b) / 2;
    if (a > 0) nats += (a / 2) * Math.log(a / middle);
    if (b > 0) nats += (b / 2) * Math.log(b / middle);
  }
  return Math.sqrt(Math.max(0, base === "2" ? nats / Math.LN2 : nats));
}

/**
 * Population stability index: the sum of (q - p) ln(q / p) over categories, in nats; 0.1 and 0.25 are the customary limits of
 * slight and of large change. Shares below `floor` count as that, since one empty category would make it infinite. Throws
 * `invalid_option` as `jensenShannon`.
 */
export function populationStability(
  baseline: readonly number[],
  current: readonly number[],
  floor = 1e-4,
): number {
  requireLevel("floor", floor);
  const [p, q] = sharesOf(baseline, current);
  return p.reduce((sum, share, index) => {
    const before = Math.max(floor, share);
    const after = Math.max(floor, q[index]!);
    return sum + (after - before) * Math.log(after / before);
  }, 0);
}

function sharesOf(first: readonly number[], second: readonly number[]): [number[], number[]] {
  requireSameLength("first", first.length, "second", second.length);
  requireWeights("first", first);
  requireWeights("second", second);
  const normalise = (weights: readonly number[]) => {
    const total = weights.reduce((sum, weight) => sum + weight, 0);
    return weights.map((weight) => weight / total);
  };
  return [normalise(first), normalise(second)];
}

/** How many values lie below, between and above ascending edges: one count more than there are edges; an edge belongs above. */
export function binCounts(values: readonly number[], edges: readonly number[]): number[] {
  requireSample("values", values);
  for (let i = 1; i < edges.length; i++) {
    if (!(edges[i]! > edges[i - 1]!)) {
      throw new OctavoError(
        "invalid_option",
        `edges[${i}] is ${edges[i]} after ${edges[i - 1]}; expected more.`,
        {
          param: "edges",
        },
      );
    }
  }
  const counts = Array.from({ length: edges.length + 1 }, () => 0);
  for (const value of values) {
    let low = 0;
    let high = edges.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (value >= edges[middle]!) low = middle + 1;
      else high = middle;
    }
    counts[low]! += 1;
  }
  return counts;
}
