/** How far a run is. Work is counted in weights, which a layer's time follows. */
export interface QuantizeProgress {
  /** E.g. "layer 3". */
  readonly unit: string;
  readonly doneUnits: number;
  readonly totalUnits: number;
  /** Share of all work that is done, from 0 to 1. */
  readonly share: number;
  readonly elapsedMs: number;
  /** undefined until something has been done in this run. */
  readonly leftMs: number | undefined;
}

/** Estimates the time left from the work of this run; units resumed from an earlier run are not counted. */
export class ProgressClock {
  readonly #total: number;
  readonly #skipped: number;
  readonly #began = performance.now();

  constructor(total: number, skipped: number) {
    this.#total = total;
    this.#skipped = skipped;
  }

  read(done: number): Pick<QuantizeProgress, "share" | "elapsedMs" | "leftMs"> {
    const elapsedMs = performance.now() - this.#began;
    const own = done - this.#skipped;
    const leftMs = own > 0 ? (elapsedMs / own) * (this.#total - done) : undefined;
    return { share: this.#total === 0 ? 1 : done / this.#total, elapsedMs, leftMs };
  }
}
