import { BoundedMeanSequence, type Interval } from "@octavo/statistics";

/** p values are valid at every level, whichever the bets were made for. */
const usualConfidence = 0.95;
/** With more cases than this nobody plans. */
const mostPlanned = 2 ** 17;

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
  const isWithin = (count: number): boolean => {
    const losses = Array.from({ length: count }, (_, index) => {
      const changed = Math.floor((index + 1) * discordance);
      if (changed === Math.floor(index * discordance)) return 0;
      return changed % 2 === 1 ? 1 : -1;
    });
    return 2 * sequenceOf(losses, 1 - alpha).pValueBelow(margin) <= alpha;
  };
  let enough = 64;
  while (!isWithin(enough)) {
    enough *= 2;
    if (enough > mostPlanned) return undefined;
  }
  let tooFew = enough / 2;
  while (enough - tooFew > Math.max(1, enough / 64)) {
    const middle = Math.round((tooFew + enough) / 2);
    if (isWithin(middle)) enough = middle;
    else tooFew = middle;
  }
  return enough;
}
