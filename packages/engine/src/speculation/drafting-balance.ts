/** Steps after which the balance is drawn. */
const windowSteps = 64;
/** Within a window drafting may cost so many steps' time, and no more of one step: the machine was busy with something else. */
const mostLost = 8;
const mostLostByStep = 2;
/** Steps of a pause; doubled each time that drafting has cost time again. */
const firstRest = 512;
const lastRest = 8192;

/**
 * Whether a head that reads all that its model computes is worth its time. Reading costs even while nothing is drafted, so drafting pauses when
 * a window of steps has saved less than drafting and reading took, or as soon as it has cost too much, and is tried again after ever longer rests.
 */
export class DraftingBalance {
  #won = 0;
  #stepsLeft = windowSteps;
  #restLeft = 0;
  #rest = firstRest;

  /** Nothing is drafted nor read. */
  get isPaused(): boolean {
    return this.#restLeft > 0;
  }

  /** @param won of a step, in steps without drafts: what its accepted drafts save later, less what drafting, verifying and reading took */
  note(won: number): void {
    if (this.isPaused) {
      this.#restLeft -= 1;
      return;
    }
    this.#won += Math.max(won, -mostLostByStep);
    this.#stepsLeft -= 1;
    if (this.#stepsLeft > 0 && this.#won >= -mostLost) return;
    const pays = this.#won >= 0;
    this.#restLeft = pays ? 0 : this.#rest;
    this.#rest = pays ? firstRest : Math.min(2 * this.#rest, lastRest);
    this.#won = 0;
    this.#stepsLeft = windowSteps;
  }
}
