/**
 * Bounds how many long prompts are computed side by side in the first pass over a step's budget, so that together they
 * leave some of it to short ones. What nobody else wants is theirs in the pass after it. vLLM's
 * `max_long_partial_prefills`, without its idle budget.
 */
export class LongPrefills {
  readonly #threshold: number;
  readonly #most: number;
  #numLong = 0;
  #hasRefused = false;
  #isLifted = false;

  /** Prompts with more than `threshold` tokens left are long; a `threshold` or `most` of 0 sets no bound. */
  constructor(threshold: number, most: number | undefined) {
    this.#threshold = threshold;
    this.#most = threshold === 0 || !most ? Number.POSITIVE_INFINITY : most;
  }

  begin(): void {
    this.#numLong = 0;
    this.#hasRefused = false;
    this.#isLifted = false;
  }

  /** Ends the first pass over the budget: whoever is left may have the rest. Returns whether anybody had to leave it. */
  lift(): boolean {
    this.#isLifted = true;
    return this.#hasRefused;
  }

  /** Whether a prompt with `numLeft` tokens left has to leave the first pass to others. */
  mustWait(numLeft: number): boolean {
    if (this.#isLifted || this.#numLong < this.#most || numLeft <= this.#threshold) return false;
    this.#hasRefused = true;
    return true;
  }

  /** A prompt with `numLeft` tokens left, these included, gets some of them. */
  count(numLeft: number): void {
    if (numLeft > this.#threshold) this.#numLong += 1;
  }
}
