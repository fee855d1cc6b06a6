/** Smaller chunks read all weights for too few tokens. */
const minTokens = 128;
/** Steps with fewer prompt tokens are not measured. */
const minMeasuredTokens = 32;
/** Decay of earlier steps per step. */
const decay = 0.75;

/**
 * Limits how long prompts delay the next tokens of generating sequences. It measures the cost of a prompt token, including whatever
 * else its step computes, and gives the number of tokens that keep a step within `targetMs`. A fixed number would take
 * seconds on a large model and waste time on a small one.
 */
export class PrefillPacer {
  readonly #targetMs: number;
  #ms = 0;
  #tokens = 0;

  /** 0 ms means no limit. */
  constructor(targetMs: number) {
    this.#targetMs = targetMs;
  }

  /** Prompt tokens that the next step may compute beside generating sequences; infinite before the first measurement. */
  get maxTokens(): number {
    if (this.#targetMs === 0 || this.#tokens === 0 || this.#ms === 0) return Number.POSITIVE_INFINITY;
    return Math.max(minTokens, Math.floor((this.#targetMs * this.#tokens) / this.#ms));
  }

  /** Records a step's cost. */
  observe(prefillTokens: number, computeMs: number): void {
    if (prefillTokens < minMeasuredTokens) return;
    this.#ms = this.#ms * decay + computeMs;
    this.#tokens = this.#tokens * decay + prefillTokens;
  }
}
