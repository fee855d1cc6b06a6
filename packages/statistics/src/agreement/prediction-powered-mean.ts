import { requireLevel, requireSample, requireSameLength } from "../check.js";
import { normalQuantile } from "../distributions/normal.js";
import type { Estimate } from "../estimate.js";
import { mean, variance } from "../sample.js";

export interface PredictionPoweredMean extends Estimate {
  /** How much the judge is relied on: 0 not at all, 1 fully. */
  readonly reliance: number;
  /** What the labelled cases alone say. */
  readonly labelledMean: number;
}

/**
 * Mean of human labels over all cases, from few labelled and many judged ones (prediction-powered inference, Angelopoulos et al.
 * 2023; the reliance on the judge as tuned by PPI++, arXiv 2311.01453, kept in [0, 1]). Unbiased whatever the judge does; a
 * judge that knows nothing is not relied on. The interval is a large-sample one; undefined with fewer than two labels or two
 * judged cases, or where nothing varies. Labelled cases are drawn at random from all. Throws `invalid_option` on empty or
 * unequal lists and values that are not finite.
 */
export function predictionPoweredMean(
  {
    labels,
    judgedLabelled,
    judgedOnly,
  }: {
    /** Labels by humans. */
    readonly labels: readonly number[];
    /** The judge's scores of the same cases, in the same order. */
    readonly judgedLabelled: readonly number[];
    /** The judge's scores of the other cases. */
    readonly judgedOnly: readonly number[];
  },
  confidence = 0.95,
): PredictionPoweredMean {
  requireSample("labels", labels);
  requireSample("judgedLabelled", judgedLabelled);
  requireSample("judgedOnly", judgedOnly);
  requireSameLength("labels", labels.length, "judgedLabelled", judgedLabelled.length);
  requireLevel("confidence", confidence);
  const n = labels.length;
  const m = judgedOnly.length;
  const labelledMean = mean(labels);
  const reliance = relianceOn(labels, judgedLabelled, judgedOnly);
  const residuals = labels.map((label, index) => label - reliance * judgedLabelled[index]!);
  const estimate = reliance * mean(judgedOnly) + mean(residuals);
  const spread = (variance(residuals) ?? 0) / n + (reliance ** 2 * (variance(judgedOnly) ?? 0)) / m;
  const half = -normalQuantile((1 - confidence) / 2) * Math.sqrt(spread);
  return {
    estimate,
    interval: n < 2 || m < 2 || spread === 0 ? undefined : [estimate - half, estimate + half],
    confidence,
    reliance,
    labelledMean,
  };
}

/** Cov(label, judged) / ((1 + n / N) Var(judged)): what makes the variance least. */
function relianceOn(
  labels: readonly number[],
  judgedLabelled: readonly number[],
  judgedOnly: readonly number[],
): number {
  const n = labels.length;
  if (n < 2) return 0;
  const labelCenter = mean(labels);
  const judgeCenter = mean(judgedLabelled);
  let covariance = 0;
  for (const [index, label] of labels.entries()) {
    covariance += (label - labelCenter) * (judgedLabelled[index]! - judgeCenter);
  }
  covariance /= n - 1;
  const spread = variance([...judgedLabelled, ...judgedOnly]) ?? 0;
  if (spread === 0) return 0;
  return Math.min(1, Math.max(0, covariance / ((1 + n / judgedOnly.length) * spread)));
}
