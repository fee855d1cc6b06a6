import type { SharedStore, SpendingWindow } from "../store/shared-store.js";

/**
 * This instance's part of one window. It takes from the store what a call may cost at most, or where the store is shared a
 * little more, so that the next calls need not ask. What is in the purse when the instance dies counts as spent.
 */
export class Purse {
  readonly window: SpendingWindow;
  readonly #store: SharedStore;
  /** What is taken beyond need. */
  readonly #reserve: number;
  #available = 0;
  #reserved = 0;
  #spent = 0;

  constructor(store: SharedStore, window: SpendingWindow) {
    this.#store = store;
    this.window = window;
    this.#reserve = store.isShared ? Math.floor(window.limit / 1000) : 0;
  }

  /** What this instance has paid, and reserved for running calls. */
  get spent(): number {
    return this.#spent;
  }

  get reserved(): number {
    return this.#reserved;
  }

  get available(): number {
    return this.#available;
  }

  /** Whether so much is there; it is then set aside until `settle`. Whole numbers. */
  async set(amount: number): Promise<boolean> {
    if (this.#available < amount) {
      const missing = amount - this.#available;
      // what is there is taken off first: calls that come meanwhile must not count on it
      const here = this.#available;
      this.#available = 0;
      let taken = 0;
      try {
        taken = await this.#store.take(this.window, missing + this.#reserve, missing);
      } finally {
        this.#available += here + taken;
      }
      if (this.#available < amount) return false;
    }
    this.#available -= amount;
    this.#reserved += amount;
    return true;
  }

  /**
   * Ends a reservation with what the call did cost. Returns what it cost beyond what was reserved and left: 0 unless a target
   * generated more than it was asked for.
   */
  async settle(reserved: number, cost: number): Promise<number> {
    this.#reserved -= reserved;
    this.#spent += cost;
    this.#available += reserved - cost;
    let excess = 0;
    if (this.#available < 0) {
      const missing = -this.#available;
      this.#available = 0;
      excess = missing - (await this.#store.take(this.window, missing, 1));
    }
    const idle = this.#available - this.#reserve;
    if (idle > 0) await this.#giveBack(idle);
    return excess;
  }

  async #giveBack(amount: number): Promise<void> {
    this.#available -= amount;
    // where the store cannot be reached, what it is owed stays spent
    await this.#store.giveBack(this.window, amount).catch(() => undefined);
  }

  /** Returns what is not reserved. */
  async close(): Promise<void> {
    if (this.#available > 0) await this.#giveBack(this.#available);
  }
}
