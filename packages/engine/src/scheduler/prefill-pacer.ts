/** Smaller pieces of a prompt read all weights for too few tokens. */
const minTokens = 128;
/** A step with fewer prompt tokens says little about what they cost. */
const tellingTokens = 32;
/** Share of what earlier steps said that remains after each one. */
const memory = 0.75;

/**
 * Bounds how long prompts hold up those who wait for their next token. It learns what a step with prompts costs per
 * prompt token, whatever else the step computes counted in, and says how many tokens keep the step within `targetMs`.
 * A fixed number would be seconds on a large model and a waste on a small one.
 */
export class PrefillPacer {
  readonly #targetMs: number;
  #ms = 0;
  #tokens = 0;

  /** 0 ms sets no bound. */
  constructor(targetMs: number) {
    this.#targetMs = targetMs;
  }

  /** Prompt tokens that the next step may compute beside sequences that generate; no bound before anything is known. */
  get maxTokens(): number {
    if (this.#targetMs === 0 || this.#tokens === 0 || this.#ms === 0) return Number.POSITIVE_INFINITY;
    return Math.max(minTokens, Math.floor((this.#targetMs * this.#tokens) / this.#ms));
  }

  /** Takes note of a step's cost. */
  observe(prefillTokens: number, computeMs: number): void {
    if (prefillTokens < tellingTokens) return;
    this.#ms = this.#ms * memory + computeMs;
    this.#tokens = this.#tokens * memory + prefillTokens;
  }
}
