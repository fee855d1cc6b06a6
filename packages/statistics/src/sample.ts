import { requireSample } from "./check.js";

/** Pairwise summation: the error grows with the logarithm of the count. */
function sumOf(values: ArrayLike<number>, from: number, to: number): number {
  if (to - from > 64) {
    const middle = (from + to) >>> 1;
    return sumOf(values, from, middle) + sumOf(values, middle, to);
  }
  let total = 0;
  for (let i = from; i < to; i++) total += values[i]!;
  return total;
}

export function sum(values: ArrayLike<number>): number {
  return sumOf(values, 0, values.length);
}

/** Arithmetic mean. Throws `invalid_option` on an empty sample or a value that is not finite. */
export function mean(values: ArrayLike<number>): number {
  requireSample("values", values);
  return sum(values) / values.length;
}

/** Unbiased variance (divisor n - 1), by two passes; undefined for a single value. */
export function variance(values: ArrayLike<number>): number | undefined {
  const center = mean(values);
  if (values.length < 2) return undefined;
  return sum(Float64Array.from(values, (value) => (value - center) ** 2)) / (values.length - 1);
}

/** Ranks from 1, ties sharing the mean of theirs; `ties` are the sizes of groups of equal values. */
export function midranks(values: readonly number[]): { ranks: Float64Array; ties: number[] } {
  const order = values.map((_, index) => index).toSorted((a, b) => values[a]! - values[b]!);
  const ranks = new Float64Array(values.length);
  const ties: number[] = [];
  for (let start = 0; start < order.length;) {
    let end = start + 1;
    while (end < order.length && values[order[end]!] === values[order[start]!]) end++;
    for (let i = start; i < end; i++) ranks[order[i]!] = (start + 1 + end) / 2;
    if (end - start > 1) ties.push(end - start);
    start = end;
  }
  return { ranks, ties };
}
