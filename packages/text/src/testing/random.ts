/** Reproducible random numbers for tests (mulberry32): the same seed gives the same sequence on every platform. */
export class TestRandom {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** In [0, 1). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** A whole number in [0, bound). */
  below(bound: number): number {
    return Math.floor(this.next() * bound);
  }

  /** Values spread evenly over [-scale, scale). */
  floats(length: number, scale: number): Float32Array {
    return Float32Array.from({ length }, () => (this.next() * 2 - 1) * scale);
  }
}
