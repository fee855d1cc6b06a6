/**
 * Limits how many long prompts are computed side by side in the first pass over a step's budget, so that together they
 * leave some of it to short ones. A second pass gives them what is left. vLLM's `max_long_partial_prefills`, without its idle
 * budget.
 */
export class LongPrefills {
  readonly #threshold: number;
  readonly #limit: number;
  #numLong = 0;
  #hasRefused = false;
  #isLifted = false;

  /** Prompts with more than `threshold` tokens left are long; a `threshold` or `limit` of 0 means no limit. */
  constructor(threshold: number, limit: number | undefined) {
    this.#threshold = threshold;
    this.#limit = threshold === 0 || !limit ? Number.POSITIVE_INFINITY : limit;
  }

  begin(): void {
    this.#numLong = 0;
    this.#hasRefused = false;
    this.#isLifted = false;
  }

  /** Ends the first pass: long prompts may have the rest. Returns whether any of them had to wait. */
  lift(): boolean {
    this.#isLifted = true;
    return this.#hasRefused;
  }

  /** Whether a prompt with `numLeft` tokens left must wait for the second pass. */
  mustWait(numLeft: number): boolean {
    if (this.#isLifted || this.#numLong < this.#limit || numLeft <= this.#threshold) return false;
    this.#hasRefused = true;
    return true;
  }

  /** Counts a prompt that is given tokens; `numLeft` includes them. */
  count(numLeft: number): void {
    if (numLeft > this.#threshold) this.#numLong += 1;
  }
}
