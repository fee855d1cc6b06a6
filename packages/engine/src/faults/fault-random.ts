/**
 * Seeded random numbers for faults, the same on every machine: sfc32 (Doty-Humphrey, PractRand), fast enough in 32-bit arithmetic
 * to draw one per weight of a model.
 */
export class FaultRandom {
  #a: number;
  #b: number;
  #c: number;
  #counter = 1;
  #spare: number | undefined;

  constructor(seed: readonly [number, number, number]) {
    [this.#a, this.#b, this.#c] = seed;
    for (let round = 0; round < 15; round += 1) this.#next();
  }

  static of(seed: number): FaultRandom {
    return new FaultRandom([0, Math.floor(seed / 2 ** 32) | 0, seed | 0]);
  }

  /** In [0, 1). */
  uniform(): number {
    return this.#next() / 2 ** 32;
  }

  /** Standard normal, by Marsaglia's polar method. */
  normal(): number {
    if (this.#spare !== undefined) {
      const spare = this.#spare;
      this.#spare = undefined;
      return spare;
    }
    for (;;) {
      const x = 2 * this.uniform() - 1;
      const y = 2 * this.uniform() - 1;
      const square = x * x + y * y;
      if (square >= 1 || square === 0) continue;
      const scale = Math.sqrt((-2 * Math.log(square)) / square);
      this.#spare = y * scale;
      return x * scale;
    }
  }

  #next(): number {
    const result = (this.#a + this.#b + this.#counter) | 0;
    this.#counter = (this.#counter + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = (((this.#c << 21) | (this.#c >>> 11)) + result) | 0;
    return result >>> 0;
  }
}
