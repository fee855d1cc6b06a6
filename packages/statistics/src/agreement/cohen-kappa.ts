import { OctavoError } from "@octavo/protocol";
import { requireCount, requireLevel, requireSameLength } from "../check.js";
import { normalQuantile } from "../distributions/normal.js";
import type { Interval } from "../estimate.js";

/** Rows: what the first rater said, columns: the second, both in the order of `labels`. */
export interface AgreementTable {
  readonly labels: readonly string[];
  readonly counts: readonly (readonly number[])[];
}

/** Counts of label pairs, labels in ascending order. Throws `invalid_option` on lists of unequal length. */
export function agreementTable(first: readonly string[], second: readonly string[]): AgreementTable {
  requireSameLength("first", first.length, "second", second.length);
  const labels = [...new Set([...first, ...second])].toSorted();
  const counts = labels.map(() => labels.map(() => 0));
  for (const [index, label] of first.entries()) {
    counts[labels.indexOf(label)]![labels.indexOf(second[index]!)]! += 1;
  }
  return { labels, counts };
}

export interface KappaResult {
  /** Undefined where both raters only ever said one and the same thing: chance alone would agree as much. */
  readonly kappa: number | undefined;
  readonly interval: Interval | undefined;
  readonly confidence: number;
  readonly standardError: number | undefined;
  /** Share of agreement seen, and expected of raters who know nothing of each other. */
  readonly observed: number;
  readonly expected: number;
}

/**
 * Cohen's kappa (1960), or weighted kappa (1968) for ordered labels, with the large-sample interval of Fleiss, Cohen and
 * Everitt (1969), cut at [-1, 1]. Throws `invalid_option` on a table that is not square, holds anything but counts, or is empty.
 */
export function cohenKappa(
  counts: readonly (readonly number[])[],
  {
    confidence = 0.95,
    weights = "none",
  }: { readonly confidence?: number; readonly weights?: "none" | "linear" | "quadratic" } = {},
): KappaResult {
  const total = requireTable(counts);
  requireLevel("confidence", confidence);
  const k = counts.length;
  const share = counts.map((row) => row.map((count) => count / total));
  const rows = share.map((row) => row.reduce((sum, value) => sum + value, 0));
  const columns = rows.map((_, j) => share.reduce((sum, row) => sum + row[j]!, 0));
  const weight = (i: number, j: number): number => {
    if (weights === "none") return i === j ? 1 : 0;
    const distance = Math.abs(i - j) / Math.max(1, k - 1);
    return 1 - (weights === "linear" ? distance : distance ** 2);
  };
  let observed = 0;
  let expected = 0;
  for (let i = 0; i < k; i++) {
    for (let j = 0; j < k; j++) {
      observed += weight(i, j) * share[i]![j]!;
      expected += weight(i, j) * rows[i]! * columns[j]!;
    }
  }
  if (1 - expected < 1e-15) {
    return {
      kappa: undefined,
      interval: undefined,
      confidence,
      standardError: undefined,
      observed,
      expected,
    };
  }
  const kappa = (observed - expected) / (1 - expected);
  // Mean weights of a row and of a column under the other's margins.
  const rowWeight = rows.map((_, i) => columns.reduce((sum, value, j) => sum + value * weight(i, j), 0));
  const columnWeight = rows.map((_, j) => rows.reduce((sum, value, i) => sum + value * weight(i, j), 0));
  let squares = 0;
  for (let i = 0; i < k; i++) {
    for (let j = 0; j < k; j++) {
      const deviation = weight(i, j) - (rowWeight[i]! + columnWeight[j]!) * (1 - kappa);
      squares += share[i]![j]! * deviation ** 2;
    }
  }
  const center = kappa - expected * (1 - kappa);
  const standardError = Math.sqrt(Math.max(0, squares - center ** 2) / total) / (1 - expected);
  const half = -normalQuantile((1 - confidence) / 2) * standardError;
  return {
    kappa,
    // Without a disagreement, or with nothing but, the formula says that nothing is uncertain; it cannot tell.
    interval: standardError < 1e-12 ? undefined : [Math.max(-1, kappa - half), Math.min(1, kappa + half)],
    confidence,
    standardError,
    observed,
    expected,
  };
}

function requireTable(counts: readonly (readonly number[])[]): number {
  let total = 0;
  for (const [i, row] of counts.entries()) {
    requireSameLength("counts", counts.length, `counts[${i}]`, row.length);
    for (const [j, count] of row.entries()) {
      requireCount(`counts[${i}][${j}]`, count);
      total += count;
    }
  }
  if (total > 0) return total;
  throw new OctavoError("invalid_option", "counts has no observations.", { param: "counts" });
}
