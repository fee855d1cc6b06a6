/** A seeded generator of whole numbers for resampling: mulberry32 (Tommy Ettinger), 32 bits of state. */
export class SeededRandom {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** Uniform in [0, 1). */
  uniform(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let z = this.#state;
    z = Math.imul(z ^ (z >>> 15), z | 1);
    z ^= z + Math.imul(z ^ (z >>> 7), z | 61);
    return ((z ^ (z >>> 14)) >>> 0) / 2 ** 32;
  }

  /** Uniform in [0, bound). */
  below(bound: number): number {
    return Math.floor(this.uniform() * bound);
  }
}
