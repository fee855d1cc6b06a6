import { BoundedMeanSequence, type Interval } from "@octavo/statistics";
import type { Observation } from "../observation.js";

/**
 * When scores are looked at: `once`; after `any` case; or after any case and once more when all planned cases are there, of
 * which this look comes before (`early`) or is it (`planned`).
 */
export type Look = "once" | "any" | "early" | "planned";

/** Whether a case was answered counts for the plan, not how it scored: the planned look depends on no result. */
export function lookAt(
  observations: readonly Observation[],
  { sequential, plannedCases }: { readonly sequential: boolean; readonly plannedCases?: number | undefined },
): Look {
  if (!sequential) return "once";
  if (plannedCases === undefined) return "any";
  return new Set(observations.map(({ caseId }) => caseId)).size < plannedCases ? "early" : "planned";
}

/** p values are valid at every level, whichever the bets were made for. */
const usualConfidence = 0.95;
/** No plan has more cases. */
const mostPlanned = 2 ** 15;
/** A plan is exact to a quarter, which keeps it quick: A/A runs make one each. */
const planGrowth = 1.25;

/**
 * Bounds on a mean loss that hold after every case at once: one may look after each and stop when one likes.
 *
 * @param losses of clusters, -1 to 1, in the order in which they came, which must not depend on how they scored
 */
export function sequenceBounds(losses: readonly number[]): {
  intervalAt(confidence: number): Interval;
  pValueBeyond(margin: number): number;
} {
  return {
    intervalAt: (confidence) => sequenceOf(losses, confidence).interval,
    // two-sided, as the other comparisons' are
    pValueBeyond: (margin) => Math.min(1, 2 * sequenceOf(losses, usualConfidence).pValueAbove(margin)),
  };
}

function sequenceOf(losses: readonly number[], confidence: number): BoundedMeanSequence {
  const sequence = new BoundedMeanSequence({ range: [-1, 1], confidence });
  // means of scores are sums of floats
  for (const loss of losses) sequence.observe(Math.max(-1, Math.min(1, loss)));
  return sequence;
}

/**
 * Cases after which a loss is shown to be within the margin where as many are lost as gained, evenly spread: about half of
 * all runs take longer. Undefined where it takes more than can be planned.
 */
export function casesForSequence(
  discordance: number,
  { margin, alpha }: { readonly margin: number; readonly alpha: number },
): number | undefined {
  const sequence = new BoundedMeanSequence({ range: [-1, 1], confidence: 1 - alpha });
  for (let wanted = 64; wanted <= mostPlanned; wanted = Math.ceil(wanted * planGrowth)) {
    for (let index = sequence.count; index < wanted; index++) {
      const changed = Math.floor((index + 1) * discordance);
      const hasChanged = changed > Math.floor(index * discordance);
      sequence.observe(hasChanged ? (changed % 2 === 1 ? 1 : -1) : 0);
    }
    if (2 * sequence.pValueBelow(margin) <= alpha) return wanted;
  }
  return undefined;
}
