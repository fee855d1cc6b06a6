/** Counts what is under way. */
export class InFlight {
  #count = 0;
  #onIdle: (() => void) | undefined;

  /** Counts a request until it has ended. */
  async track<T>(request: Promise<T>): Promise<T> {
    this.#count += 1;
    try {
      return await request;
    } finally {
      this.#count -= 1;
      if (this.#count === 0) this.#onIdle?.();
    }
  }

  /** Resolves after `ms`, or as soon as nothing is under way. */
  untilIdle(ms: number): Promise<void> {
    if (this.#count === 0 || ms <= 0) return Promise.resolve();
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        this.#onIdle = undefined;
        resolve();
      };
      const timer = setTimeout(done, ms);
      this.#onIdle = done;
    });
  }
}
