import { requireSample } from "../check.js";
import { normalTail } from "../distributions/normal.js";
import type { Alternative } from "../estimate.js";
import { midranks } from "../sample.js";
import type { TestResult } from "./test-result.js";

export interface RankTestResult extends TestResult {
  readonly method: "exact" | "normal";
  /** Probability that the first (or a difference) is the higher one, ties counted half: 0.5 is no effect. */
  readonly superiority: number | undefined;
}

/** Up to here all assignments are counted; above, the normal approximation errs in the third digit of p. */
const mostExactDifferences = 150;
const mostExactPooled = 60;

/**
 * Wilcoxon's signed-rank test (1945) that differences are symmetric around 0; the statistic is the sum of the ranks of the
 * positive ones. Zeros are left out, ties share their ranks. Up to 150 differences the distribution is exact, ties included
 * (all signs of the ranks seen); above, normal with correction for ties and continuity. Without a difference that is not 0
 * there is no p value. Throws `invalid_option` on an empty sample and values that are not finite.
 */
export function wilcoxonSignedRank(
  differences: readonly number[],
  alternative: Alternative = "two-sided",
): RankTestResult {
  requireSample("differences", differences);
  const moved = differences.filter((value) => value !== 0);
  const n = moved.length;
  if (n === 0) return { statistic: undefined, pValue: undefined, method: "exact", superiority: 0.5 };
  const { ranks, ties } = midranks(moved.map(Math.abs));
  let statistic = 0;
  let numPositive = 0;
  for (const [index, value] of moved.entries()) {
    if (value <= 0) continue;
    statistic += ranks[index]!;
    numPositive++;
  }
  const superiority = (numPositive + (differences.length - n) / 2) / differences.length;
  if (n <= mostExactDifferences) {
    const counts = signSums(Array.from(ranks, (rank) => Math.round(2 * rank)));
    return { statistic, pValue: exact(counts, 2 * statistic, alternative), method: "exact", superiority };
  }
  const center = (n * (n + 1)) / 4;
  const tied = ties.reduce((all, size) => all + (size ** 3 - size), 0);
  const spread = Math.sqrt((n * (n + 1) * (2 * n + 1)) / 24 - tied / 48);
  return {
    statistic,
    pValue: normal(statistic - center, spread, 0.5, alternative),
    method: "normal",
    superiority,
  };
}

/**
 * Mann and Whitney's U (1947) of two independent samples: how often a value of the first exceeds one of the second, ties
 * half. Up to 60 values in all the distribution is exact, ties included (all divisions of the ranks seen); above, normal with
 * correction for ties and continuity. Where all values are equal there is no p value. Throws `invalid_option` on empty
 * samples and values that are not finite.
 */
export function mannWhitney(
  first: readonly number[],
  second: readonly number[],
  alternative: Alternative = "two-sided",
): RankTestResult {
  requireSample("first", first);
  requireSample("second", second);
  const { ranks, ties } = midranks([...first, ...second]);
  const n = first.length;
  const m = second.length;
  const all = n + m;
  let rankSum = 0;
  for (let i = 0; i < n; i++) rankSum += ranks[i]!;
  const statistic = rankSum - (n * (n + 1)) / 2;
  const superiority = statistic / (n * m);
  if (ties[0] === all) return { statistic, pValue: undefined, method: "exact", superiority };
  if (all <= mostExactPooled) {
    const doubled = Array.from(ranks, (rank) => Math.round(2 * rank));
    const pValue = exact(subsetSums(doubled, n), 2 * rankSum, alternative);
    return { statistic, pValue, method: "exact", superiority };
  }
  const tied = ties.reduce((sum, size) => sum + (size ** 3 - size), 0);
  const spread = Math.sqrt(((n * m) / 12) * (all + 1 - tied / (all * (all - 1))));
  return {
    statistic,
    pValue: normal(statistic - (n * m) / 2, spread, 0.5, alternative),
    method: "normal",
    superiority,
  };
}

/** Probability of each sum of the weights whose coins came up heads. */
function signSums(weights: readonly number[]): Float64Array {
  const most = weights.reduce((sum, weight) => sum + weight, 0);
  const counts = new Float64Array(most + 1);
  counts[0] = 1;
  let reached = 0;
  for (const weight of weights) {
    reached += weight;
    for (let s = reached; s >= 0; s--) {
      counts[s] = (counts[s]! + (s >= weight ? counts[s - weight]! : 0)) / 2;
    }
  }
  return counts;
}

/** Probability of each sum of `size` of the weights, all choices as likely. */
function subsetSums(weights: readonly number[], size: number): Float64Array {
  const most = weights.reduce((sum, weight) => sum + weight, 0);
  // rows[k][s]: share of choices of k among those seen, whose sum is s.
  const rows = Array.from({ length: size + 1 }, () => new Float64Array(most + 1));
  rows[0]![0] = 1;
  for (const [index, weight] of weights.entries()) {
    const seen = index + 1;
    for (let k = Math.min(size, seen); k >= 1; k--) {
      const row = rows[k]!;
      const shorter = rows[k - 1]!;
      // Of all choices of k among `seen`, k / seen have the newest.
      const share = k / seen;
      for (let s = most; s >= 0; s--) {
        row[s] = row[s]! * (1 - share) + (s >= weight ? shorter[s - weight]! * share : 0);
      }
    }
  }
  return rows[size]!;
}

function exact(shares: Float64Array, at: number, alternative: Alternative): number {
  const position = Math.round(at);
  let lower = 0;
  let upper = 0;
  for (let s = 0; s <= position; s++) lower += shares[s]!;
  for (let s = shares.length - 1; s >= position; s--) upper += shares[s]!;
  if (alternative === "greater") return Math.min(1, upper);
  if (alternative === "less") return Math.min(1, lower);
  return Math.min(1, 2 * Math.min(lower, upper));
}

function normal(excess: number, spread: number, continuity: number, alternative: Alternative): number {
  if (alternative === "two-sided") {
    const size = Math.max(0, Math.abs(excess) - continuity) / spread;
    return Math.min(1, 2 * normalTail(size));
  }
  const toward = alternative === "greater" ? excess : -excess;
  const z = (toward - continuity) / spread;
  return z > 0 ? normalTail(z) : 1 - normalTail(z);
}
