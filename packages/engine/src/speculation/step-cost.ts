/** Share of what earlier steps said that remains after each one. */
const memory = 0.99;
/** Before steps of different sizes were seen, a further token is taken to cost this share of a whole step. */
const firstShare = 0.25;
/** Weight of that belief, in tokens squared. */
const firstWeight = 0.03;
/** A step that takes longer than this many times what was expected says more of the machine than of the step. */
const mostSurprise = 3;

/**
 * What a step without prompts costs by the tokens it computes: a line, fitted by least squares to the steps seen, newer ones
 * counting more. Its height is the reading of the weights, its slope what a further token costs.
 */
export class StepCost {
  #weight = 0;
  #tokens = 0;
  #ms = 0;
  #tokensSquared = 0;
  #tokensByMs = 0;

  /** Nothing is known yet. */
  get isUnknown(): boolean {
    return this.#weight === 0;
  }

  observe(numTokens: number, ms: number): void {
    const believed = this.isUnknown ? ms : Math.min(ms, this.of(numTokens) * mostSurprise);
    this.#weight = this.#weight * memory + 1;
    this.#tokens = this.#tokens * memory + numTokens;
    this.#ms = this.#ms * memory + believed;
    this.#tokensSquared = this.#tokensSquared * memory + numTokens * numTokens;
    this.#tokensByMs = this.#tokensByMs * memory + numTokens * believed;
  }

  /** Milliseconds of one further token. */
  get perToken(): number {
    if (this.isUnknown) return 0;
    const tokens = this.#tokens / this.#weight;
    const ms = this.#ms / this.#weight;
    const variance = Math.max(0, this.#tokensSquared / this.#weight - tokens * tokens);
    const covariance = this.#tokensByMs / this.#weight - tokens * ms;
    const first = (ms * firstShare) / Math.max(1, tokens);
    // At least something, lest an uneven machine makes guesses look free; at most what a step in proportion would cost.
    const fitted = (covariance + firstWeight * first) / (variance + firstWeight);
    return Math.min(Math.max(fitted, 0.01 * first), ms / Math.max(1, tokens));
  }

  /** Milliseconds of a step with so many tokens. */
  of(numTokens: number): number {
    if (this.isUnknown) return 0;
    return this.#ms / this.#weight + this.perToken * (numTokens - this.#tokens / this.#weight);
  }
}
