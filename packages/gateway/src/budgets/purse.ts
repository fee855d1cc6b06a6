import type { MaybePromise } from "../exchange/maybe-promise.js";
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
  set(amount: number): MaybePromise<boolean> {
    const here = this.#available;
    if (here >= amount) return this.#setAside(amount);
    const missing = amount - here;
    // what is there is taken off first: calls that come meanwhile must not count on it
    this.#available = 0;
    try {
      const taken = this.#store.take(this.window, missing + this.#reserve, missing);
      if (taken instanceof Promise) return this.#setLater(taken, here, amount);
      this.#available += here + taken;
    } catch (thrown) {
      this.#available += here;
      throw thrown;
    }
    return this.#setAside(amount);
  }

  async #setLater(taking: Promise<number>, here: number, amount: number): Promise<boolean> {
    let taken = 0;
    try {
      taken = await taking;
    } finally {
      this.#available += here + taken;
    }
    return this.#setAside(amount);
  }

  #setAside(amount: number): boolean {
    if (this.#available < amount) return false;
    this.#available -= amount;
    this.#reserved += amount;
    return true;
  }

  /**
   * Ends a reservation with what the call did cost. Returns what it cost beyond what was reserved and left: 0 unless a target
   * generated more than it was asked for.
   */
  settle(reserved: number, cost: number): MaybePromise<number> {
    this.#reserved -= reserved;
    this.#spent += cost;
    this.#available += reserved - cost;
    if (this.#available < 0) return this.#cover(-this.#available);
    const idle = this.#available - this.#reserve;
    const giving = idle > 0 ? this.#giveBack(idle) : undefined;
    return giving instanceof Promise ? giving.then(() => 0) : 0;
  }

  async #cover(missing: number): Promise<number> {
    this.#available = 0;
    return missing - (await this.#store.take(this.window, missing, 1));
  }

  #giveBack(amount: number): MaybePromise<void> {
    this.#available -= amount;
    // where the store cannot be reached, what it is owed stays spent
    try {
      const giving = this.#store.giveBack(this.window, amount);
      if (giving instanceof Promise) return giving.catch(() => undefined);
    } catch {
      return undefined;
    }
  }

  /** Returns what is not reserved. */
  async close(): Promise<void> {
    if (this.#available > 0) await this.#giveBack(this.#available);
  }
}
