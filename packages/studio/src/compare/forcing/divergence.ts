/** Two predictions of one token, compared. Losses in nats. */
export interface TokenDivergence {
  /** KL(baseline || variant) over the whole vocabulary, nats; exactly 0 for equal logits. */
  readonly kl: number;
  /** -log p(target). */
  readonly baselineLoss: number;
  readonly variantLoss: number;
  /** Most likely token, the lowest id of equals. */
  readonly baselineTop: number;
  readonly variantTop: number;
  /** Probability each model gives to its own most likely token. */
  readonly baselineTopProbability: number;
  readonly variantTopProbability: number;
  /** Every logit has the same bits. */
  readonly isIdentical: boolean;
}

/**
 * KL = sum of p (a - b) - logsumexp(a) + logsumexp(b), with p the baseline's distribution over its logits a, b the
 * variant's. Sums in f64. Rounding can leave a tiny negative value, which counts as 0.
 * @param baseline `[vocab]`, finite
 * @param variant `[vocab]`, finite
 */
export function divergence(baseline: Float32Array, variant: Float32Array, target: number): TokenDivergence {
  const { length } = baseline;
  let baselineTop = 0;
  let variantTop = 0;
  let baselineMax = -Infinity;
  let variantMax = -Infinity;
  let isIdentical = true;
  for (let id = 0; id < length; id++) {
    const a = baseline[id]!;
    const b = variant[id]!;
    if (a > baselineMax) {
      baselineMax = a;
      baselineTop = id;
    }
    if (b > variantMax) {
      variantMax = b;
      variantTop = id;
    }
    if (a !== b) isIdentical = false;
  }
  let baselineSum = 0;
  let variantSum = 0;
  let weighted = 0;
  for (let id = 0; id < length; id++) {
    const a = baseline[id]!;
    const b = variant[id]!;
    const p = Math.exp(a - baselineMax);
    baselineSum += p;
    variantSum += Math.exp(b - variantMax);
    weighted += p * (a - b);
  }
  const baselineNorm = baselineMax + Math.log(baselineSum);
  const variantNorm = variantMax + Math.log(variantSum);
  const kl = weighted / baselineSum - baselineNorm + variantNorm;
  return {
    kl: isIdentical ? 0 : Math.max(0, kl),
    baselineLoss: baselineNorm - baseline[target]!,
    variantLoss: variantNorm - variant[target]!,
    baselineTop,
    variantTop,
    baselineTopProbability: 1 / baselineSum,
    variantTopProbability: 1 / variantSum,
    isIdentical,
  };
}
