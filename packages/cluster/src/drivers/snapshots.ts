import { isDeepStrictEqual } from "node:util";

export interface SnapshotsOptions<T> {
  /** How old a snapshot may be. */
  readonly periodMs: number;
  readonly take: () => Promise<T>;
  /** What each deployment has in it. */
  readonly partsOf: (snapshot: T) => ReadonlyMap<string, unknown>;
}

/** What runs elsewhere as it was a moment ago: asked for once per period however often it is looked at, a failure too. */
export class Snapshots<T> {
  readonly #options: SnapshotsOptions<T>;
  readonly #listeners: ((deployment: string) => void)[] = [];
  #latest: Promise<T> | undefined;
  #takenMs = 0;
  #parts: ReadonlyMap<string, unknown> = new Map();

  constructor(options: SnapshotsOptions<T>) {
    this.#options = options;
  }

  latest(): Promise<T> {
    if (this.#latest === undefined || performance.now() - this.#takenMs > this.#options.periodMs) {
      this.#takenMs = Number.POSITIVE_INFINITY;
      const taking = this.#options.take().finally(() => {
        if (this.#latest === taking) this.#takenMs = performance.now();
      });
      this.#latest = taking;
      taking.then(
        (snapshot) => this.#compare(snapshot),
        () => undefined, // whoever asked hears of it
      );
    }
    return this.#latest;
  }

  /** The next look asks again. */
  forget(): void {
    this.#latest = undefined;
  }

  onChange(listener: (deployment: string) => void): void {
    this.#listeners.push(listener);
  }

  #compare(snapshot: T): void {
    const before = this.#parts;
    this.#parts = this.#options.partsOf(snapshot);
    for (const name of new Set([...before.keys(), ...this.#parts.keys()]))
      if (!isDeepStrictEqual(before.get(name), this.#parts.get(name)))
        for (const listener of this.#listeners) listener(name);
  }
}
