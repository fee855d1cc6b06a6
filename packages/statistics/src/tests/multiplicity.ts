import { requireShare } from "../check.js";

function ascending(pValues: readonly number[]): number[] {
  for (const [index, value] of pValues.entries()) requireShare(`pValues[${index}]`, value);
  return pValues.map((_, index) => index).toSorted((a, b) => pValues[a]! - pValues[b]!);
}

/**
 * Holm's step-down adjustment (1979): adjusted p values in the order given. Comparing them with alpha keeps the chance of
 * any false rejection at alpha or less, however the tests depend on each other. Throws `invalid_option` outside [0, 1].
 */
export function holm(pValues: readonly number[]): number[] {
  const adjusted = pValues.map(() => 1);
  let running = 0;
  for (const [rank, index] of ascending(pValues).entries()) {
    running = Math.max(running, Math.min(1, pValues[index]! * (pValues.length - rank)));
    adjusted[index] = running;
  }
  return adjusted;
}

/** Hochberg's step-up adjustment (1988): more powerful than Holm's, valid for independent or positively dependent tests. */
export function hochberg(pValues: readonly number[]): number[] {
  return stepUp(pValues, (rank) => pValues.length - rank + 1);
}

/**
 * Benjamini and Hochberg (1995): adjusted so that comparing with q keeps the expected share of false ones among the rejected
 * at q or less, for independent or positively dependent tests.
 */
export function benjaminiHochberg(pValues: readonly number[]): number[] {
  return stepUp(pValues, (rank) => pValues.length / rank);
}

function stepUp(pValues: readonly number[], factor: (rank: number) => number): number[] {
  const adjusted = pValues.map(() => 1);
  const order = ascending(pValues);
  let running = 1;
  for (let rank = order.length; rank >= 1; rank--) {
    const index = order[rank - 1]!;
    running = Math.min(running, pValues[index]! * factor(rank));
    adjusted[index] = running;
  }
  return adjusted;
}

/**
 * Hommel's adjustment (1988), by the algorithm of Wright (1992): the closure of Simes's test, never less powerful than
 * Hochberg's, valid where that is.
 */
export function hommel(pValues: readonly number[]): number[] {
  const order = ascending(pValues);
  const n = order.length;
  const sorted = order.map((index) => pValues[index]!);
  const best = Math.min(1, ...sorted.map((p, i) => (n * p) / (i + 1)));
  const q = sorted.map(() => best);
  let adjusted = [...q];
  for (let size = n - 1; size >= 2; size--) {
    const first = n - size + 1;
    let least = Infinity;
    for (let i = first; i < n; i++) least = Math.min(least, (size * sorted[i]!) / (2 + i - first));
    for (let i = 0; i < first; i++) q[i] = Math.min(size * sorted[i]!, least);
    for (let i = first; i < n; i++) q[i] = q[first - 1]!;
    adjusted = adjusted.map((value, i) => Math.max(value, q[i]!));
  }
  const result = pValues.map(() => 1);
  for (const [rank, index] of order.entries()) result[index] = Math.max(adjusted[rank]!, sorted[rank]!);
  return result;
}
