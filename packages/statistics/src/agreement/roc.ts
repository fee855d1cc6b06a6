import { requireLevel, requireSameLength, requireSample } from "../check.js";
import { normalQuantile } from "../distributions/normal.js";
import type { Interval } from "../estimate.js";
import { mean, midranks, variance } from "../sample.js";

/** How well scores tell two kinds of cases apart, whatever threshold is chosen. */
export interface RocResult {
  /** Area under the ROC curve: the chance that a positive case scores higher than a negative one, ties counting half. */
  readonly auc: number;
  /** DeLong et al. (1988) on the logit scale; where the kinds do not overlap, as of a proportion without a failure. */
  readonly interval: Interval;
  /** Area under the precision-recall curve by steps, cases of one score at one step. */
  readonly averagePrecision: number;
  readonly numPositive: number;
  readonly numNegative: number;
}

/**
 * The receiver operating characteristic of scores against labels; undefined where all labels are alike. Throws `invalid_option`
 * for a score that is not finite, or lists of different lengths.
 */
export function rocCurve(
  scores: readonly number[],
  labels: readonly boolean[],
  confidence = 0.95,
): RocResult | undefined {
  requireSample("scores", scores);
  requireSameLength("scores", scores.length, "labels", labels.length);
  requireLevel("confidence", confidence);
  const { ranks } = midranks(scores);
  const positive = scores.flatMap((_, index) => (labels[index] === true ? [index] : []));
  const negative = scores.flatMap((_, index) => (labels[index] === true ? [] : [index]));
  if (positive.length === 0 || negative.length === 0) return undefined;
  // for each case, the share of the other kind that scores lower
  const parts = (own: readonly number[], numOthers: number): number[] => {
    const within = midranks(own.map((index) => scores[index]!)).ranks;
    return own.map((index, at) => (ranks[index]! - within[at]!) / numOthers);
  };
  const ofPositive = parts(positive, negative.length);
  const auc = mean(ofPositive);
  const spread =
    (variance(ofPositive) ?? 0) / positive.length +
    (variance(parts(negative, positive.length)) ?? 0) / negative.length;
  return {
    auc,
    interval: aucInterval(auc, spread, Math.min(positive.length, negative.length), 1 - confidence),
    averagePrecision: averagePrecisionOf(scores, labels),
    numPositive: positive.length,
    numNegative: negative.length,
  };
}

function aucInterval(auc: number, spread: number, numRarer: number, alpha: number): Interval {
  if (auc === 1) return [alpha ** (1 / numRarer), 1];
  if (auc === 0) return [0, 1 - alpha ** (1 / numRarer)];
  const logit = Math.log(auc / (1 - auc));
  const half = (normalQuantile(1 - alpha / 2) * Math.sqrt(spread)) / (auc * (1 - auc));
  return [1 / (1 + Math.exp(half - logit)), 1 / (1 + Math.exp(-half - logit))];
}

function averagePrecisionOf(scores: readonly number[], labels: readonly boolean[]): number {
  const order = scores.map((_, index) => index).toSorted((a, b) => scores[b]! - scores[a]!);
  let sum = 0;
  let hits = 0;
  for (let start = 0; start < order.length;) {
    let end = start;
    let own = 0;
    for (; end < order.length && scores[order[end]!] === scores[order[start]!]; end++)
      if (labels[order[end]!] === true) own += 1;
    hits += own;
    sum += own * (hits / end);
    start = end;
  }
  return sum / hits;
}
