/** Steps after which the balance is drawn. */
const windowSteps = 64;
/** Steps of a pause; doubled each time that drafting has cost time again. */
const firstRest = 512;
const lastRest = 8192;

/**
 * Whether a head that reads all that its model computes is worth its time. Reading costs even while nothing is drafted, so drafting pauses when
 * a window of steps has saved less than drafting and reading took, and is tried again after ever longer rests.
 */
export class DraftingBalance {
  #balanceMs = 0;
  #stepsLeft = windowSteps;
  #restLeft = 0;
  #rest = firstRest;

  /** Nothing is drafted nor read. */
  get isPaused(): boolean {
    return this.#restLeft > 0;
  }

  /** Of a step: what its accepted drafts save later, and what drafting, verifying and reading took. */
  note(savedMs: number, tookMs: number): void {
    if (this.isPaused) {
      this.#restLeft -= 1;
      return;
    }
    this.#balanceMs += savedMs - tookMs;
    this.#stepsLeft -= 1;
    if (this.#stepsLeft > 0) return;
    const pays = this.#balanceMs >= 0;
    this.#restLeft = pays ? 0 : this.#rest;
    this.#rest = pays ? firstRest : Math.min(2 * this.#rest, lastRest);
    this.#balanceMs = 0;
    this.#stepsLeft = windowSteps;
  }
}
