/**
 * Probability of at least `losses` of `losses + gains` coin tosses coming up losses: the one-sided exact sign test, which
 * on paired right and wrong answers is McNemar's exact test (McNemar 1947).
 */
export function signTest(losses: number, gains: number): number {
  const trials = losses + gains;
  if (losses === 0) return 1;
  let tail = 0;
  let logChoose = 0;
  for (let successes = 0; successes <= trials; successes++) {
    if (successes > 0) logChoose += Math.log(trials - successes + 1) - Math.log(successes);
    if (successes >= losses) tail += Math.exp(logChoose - trials * Math.LN2);
  }
  return Math.min(1, tail);
}

/** Holm's step-down adjustment (1979): adjusted p-values in the order given. */
export function holm(values: readonly number[]): number[] {
  const order = values.map((_, index) => index).toSorted((a, b) => values[a]! - values[b]!);
  const adjusted = values.map(() => 1);
  let running = 0;
  for (const [rank, index] of order.entries()) {
    running = Math.max(running, Math.min(1, values[index]! * (values.length - rank)));
    adjusted[index] = running;
  }
  return adjusted;
}
