import { clopperPearson } from "@octavo/statistics";

/** A case that the classifier had not seen: how sure it is of its verdict, and whether the judge shares it. */
export interface CertifiedCase {
  /** Probability of the verdict, 0.5 to 1. */
  readonly certainty: number;
  readonly agrees: boolean;
}

export interface CertifiedThreshold {
  /** From which certainty on the classifier decides. */
  readonly certainty: number;
  readonly numDecided: number;
  readonly numAgreed: number;
  /** Lower bound of the agreement on what it decides, at the requested confidence. */
  readonly lowerBound: number;
}

/** Thresholds that are tried, from the one that leaves just enough to be certified to the one that decides all. */
const numTried = 20;

/**
 * The lowest threshold whose decisions agree with the judge in at least `agreement` of all cases of this kind, with a probability of
 * `confidence`. Thresholds are quantiles of certainties of other cases, and are tested from the strictest down until one fails the exact
 * binomial test: a fixed sequence, so that testing many costs nothing (Learn then Test, Angelopoulos et al. 2021, arXiv 2110.01052).
 * @param cases independent, and unseen when classifier and `reference` were made
 * @returns undefined where not even the strictest can be certified
 */
export function certifyThreshold(
  cases: readonly CertifiedCase[],
  reference: readonly number[],
  { agreement, confidence }: { readonly agreement: number; readonly confidence: number },
): CertifiedThreshold | undefined {
  const descending = reference.toSorted((a, b) => b - a);
  const strictest = Math.min(1, decisionsFor(agreement, confidence) / cases.length);
  let certified: CertifiedThreshold | undefined;
  for (let index = 0; index <= numTried; index += 1) {
    const share = strictest + ((1 - strictest) * index) / numTried;
    const place = Math.min(descending.length, Math.ceil(share * descending.length)) - 1;
    const certainty = share >= 1 ? 0.5 : (descending[place] ?? 0.5);
    const decided = cases.filter((one) => one.certainty >= certainty);
    const numAgreed = decided.filter(({ agrees }) => agrees).length;
    if (decided.length === 0) break;
    // one-sided: the lower end of the two-sided interval at twice the error
    const lowerBound = clopperPearson(numAgreed, decided.length, 1 - 2 * (1 - confidence))[0];
    if (lowerBound < agreement) break;
    certified = { certainty, numDecided: decided.length, numAgreed, lowerBound };
  }
  return certified;
}

/** Decisions that can be certified with a mistake or two among them. */
export function decisionsFor(agreement: number, confidence: number): number {
  return Math.ceil((1.6 * Math.log(1 - confidence)) / Math.log(agreement));
}
