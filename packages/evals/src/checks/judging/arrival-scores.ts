import type { Observation } from "../observation.js";
import { points } from "./loss-effect.js";
import { comparePaired, type PairedComparison, type PairedScore } from "./paired-comparison.js";
import { evaluatorsOf } from "./pairs.js";
import type { TimedPair } from "./time-blocks.js";

/** One evaluator's scores of the same arrivals under two conditions. */
export interface ArrivalScores {
  readonly evaluator: string;
  readonly scores: readonly PairedScore[];
  /** Undefined where no arrival was scored on both sides. */
  readonly compared: PairedComparison | undefined;
  /** Arrivals that were answered on both sides and scored on one. */
  readonly oneSided: number;
  /** Whether few enough are one-sided for anything to be within a margin: the missing ones may be those that went wrong. */
  readonly isWhole: boolean;
}

/** Scores from every evaluator that scored something on either side. */
export function scoresOfArrivals(
  pairs: readonly TimedPair[],
  { maxMissingShare }: { readonly maxMissingShare: number },
): readonly ArrivalScores[] {
  return evaluatorsOf(pairs.flatMap(({ reference, observed }) => [reference, observed])).map((evaluator) => {
    const scores: PairedScore[] = [];
    let oneSided = 0;
    for (const { caseId, reference, observed } of pairs) {
      const [before, after] = [scoreOf(reference, evaluator), scoreOf(observed, evaluator)];
      if (before !== undefined && after !== undefined)
        scores.push({ cluster: reference.cluster ?? caseId, before, after });
      else if ((before !== undefined || after !== undefined) && isAnswered(reference) && isAnswered(observed))
        oneSided += 1;
    }
    const isWhole = oneSided <= maxMissingShare * (scores.length + oneSided);
    return { evaluator, scores, compared: comparePaired(scores), oneSided, isWhole };
  });
}

export function oneSidedNotes(label: string, scored: readonly ArrivalScores[]): readonly string[] {
  return scored.flatMap(({ evaluator, scores, oneSided, isWhole }) => {
    if (oneSided === 0) return [];
    const share = oneSided / (scores.length + oneSided);
    const consequence = isWhole ? "left out" : `${points(share)} %: nothing is shown by the others`;
    return [`${label}${evaluator}: ${oneSided} cases were scored on one side only, ${consequence}`];
  });
}

function scoreOf({ scores }: Observation, evaluator: string): number | undefined {
  return scores[evaluator] ?? undefined;
}

function isAnswered({ failureCode }: Observation): boolean {
  return failureCode === undefined;
}
