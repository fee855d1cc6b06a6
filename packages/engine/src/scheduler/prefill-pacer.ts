/** Steps with fewer prompt tokens are only measured when no more were allowed. Also the first bound, until one was measured. */
const fewTokens = 32;
/** Relative error of a measured step, and relative change of what is estimated from one step to the next. */
const noise = 0.05;
const drift = 0.05;
/** A bound is no more than so many times the tokens measured last: a small step tells little of what a token costs. */
const mostGrowth = 2;
/** Where steps without prompt tokens take `targetMs` already, those with some may take so many times as long. */
const leastStretch = 1.25;

/**
 * Limits how long prompts delay the next tokens of generating sequences: gives the number of prompt tokens that keep a step within
 * `targetMs`. A step's time is taken as a base and a cost for each prompt token, both followed by a Kalman filter (random walk of
 * two states), so that a cost learned from a long prompt computed alone holds for the small pieces beside others.
 */
export class PrefillPacer {
  readonly #targetMs: number;
  /** Estimates, with the variances and covariance of their errors: ms of a step without prompt tokens, and ms of each prompt token. */
  #baseMs: number;
  #baseVariance: number;
  #tokenMs = 0;
  #tokenVariance = 1e6;
  #covariance = 0;
  /** Prompt tokens of the last step that had any. */
  #measuredTokens = 0;

  /** 0 ms means no limit. */
  constructor(targetMs: number) {
    this.#targetMs = targetMs;
    this.#baseMs = targetMs / 2;
    this.#baseVariance = this.#baseMs ** 2;
  }

  /** Prompt tokens that the next step may compute beside generating sequences, at least one. */
  get maxTokens(): number {
    if (this.#targetMs === 0) return Number.POSITIVE_INFINITY;
    if (this.#measuredTokens === 0) return fewTokens;
    const limitMs = this.#baseMs < this.#targetMs ? this.#targetMs : leastStretch * this.#baseMs;
    const tokens = Math.floor((limitMs - this.#baseMs) / this.#tokenMs);
    return Math.max(1, Math.min(tokens, mostGrowth * this.#measuredTokens));
  }

  /** Records a step's cost. */
  observe(prefillTokens: number, computeMs: number): void {
    if (this.#targetMs === 0 || (prefillTokens > 0 && prefillTokens < Math.min(fewTokens, this.maxTokens)))
      return;
    this.#baseVariance += (drift * this.#baseMs) ** 2;
    this.#tokenVariance += (drift * this.#tokenMs) ** 2;
    const expectedMs = this.#baseMs + prefillTokens * this.#tokenMs;
    const error = computeMs - expectedMs;
    const baseWeight = this.#baseVariance + prefillTokens * this.#covariance;
    const tokenWeight = this.#covariance + prefillTokens * this.#tokenVariance;
    const variance = baseWeight + prefillTokens * tokenWeight + (noise * expectedMs) ** 2 + 1e-6;
    // No step takes less than one without prompt tokens.
    this.#baseMs = Math.min(computeMs, Math.max(0, this.#baseMs + (baseWeight / variance) * error));
    if (prefillTokens > 0) this.#measuredTokens = prefillTokens;
    // No number of tokens is free.
    if (this.#measuredTokens > 0) {
      const leastMs = (noise * computeMs) / this.#measuredTokens;
      this.#tokenMs = Math.max(leastMs, this.#tokenMs + (tokenWeight / variance) * error);
    }
    this.#baseVariance -= baseWeight ** 2 / variance;
    this.#tokenVariance -= tokenWeight ** 2 / variance;
    this.#covariance -= (baseWeight * tokenWeight) / variance;
    // A base that cannot fall further takes no more of the error; the tokens' cost does.
    if (this.#baseMs === 0) this.#covariance = this.#baseVariance = 0;
  }
}
