import { requireLevel } from "../check.js";
import { normalQuantile } from "../distributions/normal.js";
import type { Interval } from "../estimate.js";
import { type Proportion, requireProportion, wilson } from "../intervals/proportion.js";

/** A judge against human labels: of the cases that are right, how many it passed; of those that are wrong, how many it failed. */
export interface JudgeCalibration {
  /** Passed, of cases that humans passed. */
  readonly sensitivity: Proportion;
  /** Failed, of cases that humans failed. */
  readonly specificity: Proportion;
}

export interface BalancedAccuracy {
  readonly estimate: number;
  readonly interval: Interval;
  readonly confidence: number;
  readonly sensitivity: number;
  readonly specificity: number;
}

/**
 * Mean of sensitivity and specificity: 0.5 for a judge that knows nothing, however unbalanced the labels. The interval joins
 * both Wilson intervals (square-and-add, Zou and Donner 2008). Throws `invalid_option` where one of the labels has no case.
 */
export function balancedAccuracy(
  { sensitivity, specificity }: JudgeCalibration,
  confidence = 0.95,
): BalancedAccuracy {
  requireProportion("sensitivity.", sensitivity, 1);
  requireProportion("specificity.", specificity, 1);
  requireLevel("confidence", confidence);
  const z = -normalQuantile((1 - confidence) / 2);
  const a = sensitivity.successes / sensitivity.trials;
  const b = specificity.successes / specificity.trials;
  const [aLow, aHigh] = wilson(sensitivity.successes, sensitivity.trials, z);
  const [bLow, bHigh] = wilson(specificity.successes, specificity.trials, z);
  const estimate = (a + b) / 2;
  return {
    estimate,
    interval: [
      Math.max(0, estimate - Math.hypot(a - aLow, b - bLow) / 2),
      Math.min(1, estimate + Math.hypot(aHigh - a, bHigh - b) / 2),
    ],
    confidence,
    sensitivity: a,
    specificity: b,
  };
}

export interface CorrectedRate {
  /** In [0, 1]; undefined for a judge that is no better than chance, whose verdicts say nothing about the rate. */
  readonly estimate: number | undefined;
  readonly interval: Interval | undefined;
  readonly confidence: number;
  /** What the judge said. */
  readonly uncorrected: number;
}

/**
 * The true rate of passes behind a judge's verdicts: (p + specificity - 1) / (sensitivity + specificity - 1) (Rogan and Gladen
 * 1978), with the interval of Lang and Reiczigel (2014), which adds the uncertainty of the calibration to that of the verdicts;
 * proposed for model judges in arXiv 2511.21140. The calibration's cases must be labelled apart from `judged` and be of the
 * same kind. Throws `invalid_option` without judged cases or without calibration cases of either label.
 */
export function correctedRate(
  judged: Proportion,
  { sensitivity, specificity }: JudgeCalibration,
  confidence = 0.95,
): CorrectedRate {
  requireProportion("judged.", judged, 1);
  requireProportion("sensitivity.", sensitivity, 1);
  requireProportion("specificity.", specificity, 1);
  requireLevel("confidence", confidence);
  const z = -normalQuantile((1 - confidence) / 2);
  const uncorrected = judged.successes / judged.trials;
  const plain = youden(
    sensitivity.successes / sensitivity.trials,
    specificity.successes / specificity.trials,
  );
  // With pseudo-counts, as Agresti and Coull's interval has them.
  const trials = judged.trials + z * z;
  const p = (judged.successes + (z * z) / 2) / trials;
  const positives = sensitivity.trials + 2;
  const se = (sensitivity.successes + 1) / positives;
  const negatives = specificity.trials + 2;
  const sp = (specificity.successes + 1) / negatives;
  const index = youden(se, sp);
  if (plain <= 0 || index <= 0) {
    return { estimate: undefined, interval: undefined, confidence, uncorrected };
  }
  const specificityRate = specificity.successes / specificity.trials;
  const rate = (p + sp - 1) / index;
  const seTerm = (se * (1 - se)) / positives;
  const spTerm = (sp * (1 - sp)) / negatives;
  const shift = 2 * z * z * (rate * seTerm - (1 - rate) * spTerm);
  const half =
    (z / index) * Math.sqrt((p * (1 - p)) / trials + rate ** 2 * seTerm + (1 - rate) ** 2 * spTerm);
  const clip = (value: number) => Math.min(1, Math.max(0, value));
  return {
    estimate: clip((uncorrected + specificityRate - 1) / plain),
    interval: [clip(rate + shift - half), clip(rate + shift + half)],
    confidence,
    uncorrected,
  };
}

function youden(sensitivity: number, specificity: number): number {
  return sensitivity + specificity - 1;
}
