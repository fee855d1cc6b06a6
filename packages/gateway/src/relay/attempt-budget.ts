/** Attempts that are always allowed, however few calls came before. */
const reserve = 10;

/**
 * Bounds extra attempts (retries, hedges) to a share of calls, so that a target in trouble is not asked ever more often: each
 * call earns a share of an attempt, each extra attempt takes one.
 */
export class AttemptBudget {
  readonly #share: number;
  #credit: number;

  constructor(share: number, start = reserve) {
    this.#share = share;
    this.#credit = share === 0 ? 0 : share === Infinity ? Infinity : start;
  }

  earn(): void {
    if (this.#credit !== Infinity) this.#credit = Math.min(reserve, this.#credit + this.#share);
  }

  /** False where the budget is used up. */
  take(): boolean {
    if (this.#credit < 1) return false;
    this.#credit -= 1;
    return true;
  }
}
