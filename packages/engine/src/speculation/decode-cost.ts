/** Decay of earlier steps per step. */
const decay = 0.99;
/** Prior: until steps of different sizes were seen, one more token costs this share of a whole step. */
const priorShare = 0.25;
/** Weight of the prior, in tokens squared. */
const priorWeight = 0.03;
/** Steps are clipped to this multiple of the estimate: beyond, the machine was busy with something else. */
const maxSurprise = 3;

/**
 * The cost in ms of a step without prompts, as a line over the tokens it computes: the intercept is reading the weights, the slope
 * one more token. A recursive least-squares fit: usable from the first step on and following the newest steps. The fair
 * policy's `StepCostModel` answers another question, about steps with prompts, from means over steps of every size.
 */
export class DecodeCost {
  #weight = 0;
  #tokens = 0;
  #ms = 0;
  #tokensSquared = 0;
  #tokensByMs = 0;

  /** No step has been observed. */
  get isUnknown(): boolean {
    return this.#weight === 0;
  }

  observe(numTokens: number, ms: number): void {
    const clipped = this.isUnknown ? ms : Math.min(ms, this.of(numTokens) * maxSurprise);
    this.#weight = this.#weight * decay + 1;
    this.#tokens = this.#tokens * decay + numTokens;
    this.#ms = this.#ms * decay + clipped;
    this.#tokensSquared = this.#tokensSquared * decay + numTokens * numTokens;
    this.#tokensByMs = this.#tokensByMs * decay + numTokens * clipped;
  }

  /** Milliseconds of one more token. */
  get perToken(): number {
    if (this.isUnknown) return 0;
    const tokens = this.#tokens / this.#weight;
    const ms = this.#ms / this.#weight;
    const variance = Math.max(0, this.#tokensSquared / this.#weight - tokens * tokens);
    const covariance = this.#tokensByMs / this.#weight - tokens * ms;
    const prior = (ms * priorShare) / Math.max(1, tokens);
    // Never free, however noisy the machine; never more than in proportion to the whole step.
    const fitted = (covariance + priorWeight * prior) / (variance + priorWeight);
    return Math.min(Math.max(fitted, 0.01 * prior), ms / Math.max(1, tokens));
  }

  /** Milliseconds of a step with `numTokens` tokens. */
  of(numTokens: number): number {
    if (this.isUnknown) return 0;
    return this.#ms / this.#weight + this.perToken * (numTokens - this.#tokens / this.#weight);
  }
}
