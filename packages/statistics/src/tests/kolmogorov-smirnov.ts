import { requireSample } from "../check.js";
import type { TestResult } from "./test-result.js";

export interface KolmogorovSmirnovResult extends TestResult {
  /** Greatest distance between the two samples' cumulative shares, in [0, 1]. */
  readonly statistic: number;
  readonly pValue: number;
  readonly method: "exact" | "asymptotic";
}

/** Cells of the lattice up to which all orders are counted. */
const mostExactCells = 1_000_000;

/**
 * Kolmogorov's and Smirnov's test that two independent samples come from one distribution (Smirnov 1939). Exact by counting
 * lattice paths (Hodges 1958) up to a million pairs of values, conservative with ties; else Kolmogorov's limit. Values that
 * depend on each other (gaps of one request) make p too small. Throws `invalid_option` on empty samples and values that are
 * not finite.
 */
export function kolmogorovSmirnov(
  first: readonly number[],
  second: readonly number[],
): KolmogorovSmirnovResult {
  requireSample("first", first);
  requireSample("second", second);
  const n = first.length;
  const m = second.length;
  const a = first.toSorted((x, y) => x - y);
  const b = second.toSorted((x, y) => x - y);
  // In units of 1 / (n m), so that equal distances compare equal.
  let greatest = 0;
  for (let i = 0, j = 0; i < n && j < m;) {
    const value = Math.min(a[i]!, b[j]!);
    while (i < n && a[i] === value) i++;
    while (j < m && b[j] === value) j++;
    greatest = Math.max(greatest, Math.abs(i * m - j * n));
  }
  const statistic = greatest / (n * m);
  if (n * m <= mostExactCells) {
    return { statistic, pValue: pathsReaching(n, m, greatest), method: "exact" };
  }
  return {
    statistic,
    pValue: kolmogorovTail(statistic * Math.sqrt((n * m) / (n + m))),
    method: "asymptotic",
  };
}

/** Share of the lattice paths from (0, 0) to (n, m) that meet a point where |i m - j n| >= distance. */
function pathsReaching(n: number, m: number, distance: number): number {
  if (distance === 0) return 1;
  const reached = new Float64Array(m + 1);
  for (let i = 0; i <= n; i++) {
    for (let j = 0; j <= m; j++) {
      if (Math.abs(i * m - j * n) >= distance) reached[j] = 1;
      else if (i === 0 && j === 0) reached[j] = 0;
      else if (j === 0) continue;
      else if (i === 0) reached[j] = reached[j - 1]!;
      // A share i / (i + j) of the paths to (i, j) comes from (i - 1, j).
      else reached[j] = (reached[j]! * i + reached[j - 1]! * j) / (i + j);
    }
  }
  return reached[m]!;
}

/** Probability that Kolmogorov's distribution exceeds x. */
export function kolmogorovTail(x: number): number {
  if (x <= 0) return 1;
  if (x < 1) {
    // The theta-transformed series converges where the other does not.
    let sum = 0;
    for (let k = 1; k < 40; k += 2) sum += Math.exp(-((k * Math.PI) ** 2) / (8 * x * x));
    return Math.max(0, 1 - (Math.sqrt(2 * Math.PI) / x) * sum);
  }
  let sum = 0;
  for (let k = 1; k < 40; k++) sum += (k % 2 === 1 ? 1 : -1) * Math.exp(-2 * k * k * x * x);
  return 2 * sum;
}
