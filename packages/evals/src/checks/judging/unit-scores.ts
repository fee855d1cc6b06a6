import type { Observation } from "../observation.js";

interface UnitScores {
  readonly observations: readonly Observation[];
  /** Notes on evaluators that were left out. */
  readonly notes: readonly string[];
}

/**
 * Scores are from 0 to 1; spans may have been scored on any scale. An evaluator that was ever outside is left out whole: of
 * one from 1 to 5, a 1 is no full score.
 */
export function unitScores(observations: readonly Observation[]): UnitScores {
  const foreign = new Map<string, { least: number; most: number }>();
  for (const { scores } of observations)
    for (const [evaluator, score] of Object.entries(scores)) {
      if (score === null || (score >= 0 && score <= 1)) continue;
      const range = foreign.get(evaluator) ?? { least: score, most: score };
      foreign.set(evaluator, { least: Math.min(range.least, score), most: Math.max(range.most, score) });
    }
  if (foreign.size === 0) return { observations, notes: [] };
  const kept = ([evaluator, score]: [string, number | null]): [string, number | null] => [
    evaluator,
    foreign.has(evaluator) ? null : score,
  ];
  return {
    observations: observations.map((seen) => ({
      ...seen,
      scores: Object.fromEntries(Object.entries(seen.scores).map(kept)),
    })),
    notes: [...foreign].map(
      ([evaluator, { least, most }]) =>
        `Scores of ${JSON.stringify(evaluator)} are not from 0 to 1 (${least === most ? least : `${least} to ${most}`} among them): none of them was judged. Scale them before they are written.`,
    ),
  };
}
