import type { MaybePromise } from "../exchange/maybe-promise.js";
import type { SharedStore, SlotPool } from "../store/shared-store.js";

/** Others may use an instance's places this long after it was last heard of. */
const slotTtlMs = 15_000;

interface Pool {
  readonly pool: SlotPool;
  inUse: number;
  /** Calls that ask for a place now. */
  waiting: number;
  held: number;
  /** The store is asked by one at a time: what is held is set as a whole. */
  asking: Promise<void> | undefined;
}

/** Calls at the same time, per pool, over all instances. Slots that an instance held recently are reused without asking. */
export class ConcurrencyGate {
  readonly #store: SharedStore;
  readonly #owner: string;
  readonly #pools = new Map<string, Pool>();
  readonly #timer: NodeJS.Timeout;

  constructor(store: SharedStore, owner: string) {
    this.#store = store;
    this.#owner = owner;
    this.#timer = setInterval(() => void this.renew(), slotTtlMs / 3).unref();
  }

  /** Whether there was a place; who got one calls `leave` once. */
  enter(slots: SlotPool): MaybePromise<boolean> {
    const known = this.#pools.get(slots.key);
    if (known === undefined || known.asking !== undefined || known.inUse >= known.held)
      return this.#enterLater(slots);
    known.inUse++;
    return true;
  }

  async #enterLater(slots: SlotPool): Promise<boolean> {
    const pool = this.#pools.get(slots.key) ?? {
      pool: slots,
      inUse: 0,
      waiting: 0,
      held: 0,
      asking: undefined,
    };
    this.#pools.set(slots.key, pool);
    pool.waiting++;
    try {
      for (;;) {
        while (pool.asking !== undefined) await pool.asking;
        if (pool.inUse < pool.held) {
          pool.inUse++;
          return true;
        }
        if (pool.inUse >= slots.limit) return false;
        const wanted = pool.inUse + pool.waiting;
        await this.#ask(pool, wanted);
        // granted in full, but others were faster: then once more
        if (pool.held < wanted && pool.held <= pool.inUse) return false;
      }
    } finally {
      pool.waiting--;
    }
  }

  leave(key: string): void {
    const pool = this.#pools.get(key);
    if (pool !== undefined) pool.inUse--;
  }

  /** Keeps the places in use, and returns the others. */
  async renew(): Promise<void> {
    for (const [key, pool] of this.#pools) {
      while (pool.asking !== undefined) await pool.asking;
      // a store that cannot be reached lets them expire for others; calls that run are not ended
      await this.#ask(pool, pool.inUse + pool.waiting).catch(() => undefined);
      if (pool.inUse + pool.waiting + pool.held === 0) this.#pools.delete(key);
    }
  }

  async #ask(pool: Pool, wanted: number): Promise<void> {
    const asked = this.#store.holdSlots(pool.pool, this.#owner, wanted, slotTtlMs).then((held) => {
      pool.held = held;
    });
    pool.asking = asked.then(
      () => undefined,
      () => undefined,
    );
    try {
      await asked;
    } finally {
      pool.asking = undefined;
    }
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.renew();
  }
}
