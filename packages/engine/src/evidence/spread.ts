import type { Spread } from "@octavo/protocol";

export type { Spread };

/** Computes a spread incrementally. */
export class SpreadCounter {
  #count = 0;
  #sum = 0;
  #min = Number.POSITIVE_INFINITY;
  #max = Number.NEGATIVE_INFINITY;

  add(value: number): void {
    this.#count += 1;
    this.#sum += value;
    if (value < this.#min) this.#min = value;
    if (value > this.#max) this.#max = value;
  }

  get spread(): Spread {
    if (this.#count === 0) return { min: 0, mean: 0, max: 0 };
    return { min: this.#min, mean: this.#sum / this.#count, max: this.#max };
  }
}
