/** Sums of several quantities over the latest slices of time. */
export class RollingSums {
  readonly #width: number;
  readonly #numSlices: number;
  readonly #sums: Float64Array;
  #current = 0;

  constructor(width: number, numSlices: number) {
    this.#width = width;
    this.#numSlices = numSlices;
    this.#sums = new Float64Array(width * numSlices);
  }

  add(index: number, amount: number): void {
    this.#sums[this.#current * this.#width + index]! += amount;
  }

  /** Begins a slice; returns the sums of the oldest, which is dropped. */
  rotate(): Float64Array {
    this.#current = (this.#current + 1) % this.#numSlices;
    const start = this.#current * this.#width;
    const leaving = this.#sums.slice(start, start + this.#width);
    this.#sums.fill(0, start, start + this.#width);
    return leaving;
  }

  /** Over all slices; recomputed, since differences of large sums drift. */
  total(index: number): number {
    let sum = 0;
    for (let slice = 0; slice < this.#numSlices; slice += 1) sum += this.#sums[slice * this.#width + index]!;
    return sum;
  }
}
