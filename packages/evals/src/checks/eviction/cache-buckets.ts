import type { RuleOfThumb } from "../check.js";
import type { Observation } from "../observation.js";
import { evaluatorsOf } from "../judging/pairs.js";
import type { EvictionFields } from "./settings.js";

const buckets = ["high", "medium", "low"] as const;

/** The published curve: mean score by the share of the prompt that was found in the prefix cache. */
export function cacheHitCurve(
  observations: readonly Observation[],
  { highHitRatio: high, mediumHitRatio: medium, cliff }: EvictionFields,
): RuleOfThumb {
  const placed = observations.flatMap((observation) => {
    const { cacheHitRatio: ratio, failureCode } = observation;
    if (ratio === undefined || failureCode !== undefined) return [];
    const bucket = ratio > high ? "high" : ratio > medium ? "medium" : "low";
    return [{ bucket, scores: observation.scores }];
  });
  let tripped = false;
  const rows: (string | number | null)[][] = [];
  for (const evaluator of evaluatorsOf(observations)) {
    let best: number | undefined;
    const row: (string | number | null)[] = [evaluator];
    for (const bucket of buckets) {
      const values = placed.flatMap(({ bucket: own, scores }) => {
        const value = scores[evaluator] ?? undefined;
        return own === bucket && value !== undefined ? [value] : [];
      });
      const mean = values.length === 0 ? null : values.reduce((sum, value) => sum + value, 0) / values.length;
      if (mean !== null && best !== undefined && best - mean >= cliff - 1e-9) tripped = true;
      if (mean !== null) best = Math.max(best ?? mean, mean);
      row.push(values.length, mean === null ? null : Math.round(mean * 1000) / 1000);
    }
    rows.push(row);
  }
  return {
    rule: `Mean score by cache hit ratio: above ${high} high, above ${medium} medium, else low; look for a cliff (here: ${Math.round(cliff * 1000) / 10} points below a better bucket).`,
    tripped,
    columns: ["evaluator", "high: answers", "high", "medium: answers", "medium", "low: answers", "low"],
    rows,
  };
}
