import type { SharedStore } from "../store/shared-store.js";
import type { Breaker } from "./breaker.js";

/** What is shared of a target. */
export interface BreakerOwner {
  readonly name: string;
  readonly origin: string;
  readonly breaker: Breaker;
}

interface Followed {
  readonly key: string;
  readonly breaker: Breaker;
  /** What the store said last, or was told: when who opened it; undefined where it is closed. */
  known: string | undefined;
  telling: Promise<unknown>;
}

const lookEveryMs = 1000;
/** A target that nobody asks for so long after it might be probed is given a fresh start. */
const forgetAfterMs = 60_000;

/**
 * Lets instances that share a store know within a second which targets' breakers opened and which closed again: a target in
 * trouble costs its failures once, not once for each instance. Each instance still probes for itself; the first whose probe
 * succeeds closes it for all. While the store is away every instance goes by what it sees.
 */
export class SharedBreakers {
  readonly #store: SharedStore;
  readonly #nowMs: () => number;
  readonly #followed: readonly Followed[];
  readonly #timer: NodeJS.Timeout | undefined;

  constructor(owners: Iterable<BreakerOwner>, store: SharedStore, nowMs: () => number) {
    this.#store = store;
    this.#nowMs = nowMs;
    this.#followed = Array.from(owners, ({ name, origin, breaker }): Followed => {
      const followed: Followed = {
        key: `breaker:${name}:${origin}`,
        breaker,
        known: undefined,
        telling: Promise.resolve(),
      };
      if (store.isShared) breaker.onChange = (openedAtMs) => this.#tell(followed, openedAtMs);
      return followed;
    });
    if (store.isShared) this.#timer = setInterval(() => void this.look(), lookEveryMs).unref();
  }

  /** Takes over what other instances found. */
  async look(): Promise<void> {
    await Promise.all(this.#followed.map((followed) => this.#follow(followed).catch(() => undefined)));
  }

  #tell(followed: Followed, openedAtMs: number | undefined): void {
    const { key, breaker } = followed;
    followed.known = openedAtMs === undefined ? undefined : String(openedAtMs);
    const { known } = followed;
    followed.telling = followed.telling
      .then(() =>
        known === undefined
          ? this.#store.deleteBlobs([key])
          : this.#store.writeBlob(key, known, breaker.openForMs + forgetAfterMs),
      )
      .catch(() => undefined);
  }

  async #follow(followed: Followed): Promise<void> {
    await followed.telling;
    const before = followed.known;
    const told = await this.#store.readBlob(followed.key);
    // what this instance found meanwhile is newer
    if (told === before || followed.known !== before) return;
    followed.known = told;
    followed.breaker.follow(told === undefined ? undefined : this.#nowMs());
  }

  close(): void {
    clearInterval(this.#timer);
  }
}
