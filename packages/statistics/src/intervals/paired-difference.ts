import { requireLevel } from "../check.js";
import { normalQuantile } from "../distributions/normal.js";
import type { Estimate, Interval } from "../estimate.js";
import { type PairedTable, requirePairs } from "../tests/paired-table.js";
import { wilson } from "./proportion.js";

/**
 * Candidate's less baseline's share of right answers on the same cases, with the hybrid score interval for paired
 * proportions (Newcombe 1998, "Improved confidence intervals for the difference between binomial proportions based on
 * paired data", method 10). Negative is a loss. Throws `invalid_option` without a pair or on anything but counts.
 */
export function pairedDifference(
  table: PairedTable,
  confidence = 0.95,
): Estimate & { readonly interval: Interval } {
  const pairs = requirePairs(table);
  requireLevel("confidence", confidence);
  const { both, lost, gained } = table;
  const z = -normalQuantile((1 - confidence) / 2);
  const after = (both + gained) / pairs;
  const before = (both + lost) / pairs;
  const [afterLow, afterHigh] = wilson(both + gained, pairs, z);
  const [beforeLow, beforeHigh] = wilson(both + lost, pairs, z);
  const phi = correlation(table, pairs);
  const distance = (a: number, b: number) => Math.sqrt(Math.max(0, a * a - 2 * phi * a * b + b * b));
  const estimate = (gained - lost) / pairs;
  return {
    estimate,
    interval: [
      Math.max(-1, estimate - distance(after - afterLow, beforeHigh - before)),
      Math.min(1, estimate + distance(afterHigh - after, before - beforeLow)),
    ],
    confidence,
  };
}

/** Correlation between being right before and after; positive ones corrected for continuity. */
function correlation({ both: a, lost: b, gained: c, neither: d }: PairedTable, pairs: number): number {
  const margins = (a + b) * (c + d) * (a + c) * (b + d);
  if (margins === 0) return 0;
  const product = a * d - b * c;
  const corrected = product > 0 ? Math.max(0, product - pairs / 2) : product;
  return corrected / Math.sqrt(margins);
}
