import { OctavoError } from "@octavo/protocol";
import { requireSameLength, requireSample, requireWeights } from "../check.js";

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
