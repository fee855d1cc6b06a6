/** A small seeded generator, so that a load run can be repeated request for request (SplitMix64, Steele et al. 2014). */
export class Random {
  #state: bigint;

  constructor(seed: number | bigint) {
    this.#state = BigInt.asUintN(64, BigInt(seed));
  }

  #next64(): bigint {
    this.#state = BigInt.asUintN(64, this.#state + 0x9e3779b97f4a7c15n);
    let z = this.#state;
    z = BigInt.asUintN(64, (z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n);
    z = BigInt.asUintN(64, (z ^ (z >> 27n)) * 0x94d049bb133111ebn);
    return z ^ (z >> 31n);
  }

  /** Uniform in [0, 1), 53 bits. */
  uniform(): number {
    return Number(this.#next64() >> 11n) / 2 ** 53;
  }

  /** Uniform integer in [low, high], both included. */
  integer(low: number, high: number): number {
    return low + Math.floor(this.uniform() * (high - low + 1));
  }

  pick<T>(items: readonly T[]): T {
    const item = items[Math.floor(this.uniform() * items.length)];
    if (item === undefined) throw new RangeError("pick from an empty list");
    return item;
  }

  exponential(mean: number): number {
    return -Math.log(1 - this.uniform()) * mean;
  }

  normal(): number {
    return Math.sqrt(-2 * Math.log(1 - this.uniform())) * Math.cos(2 * Math.PI * this.uniform());
  }

  /** Marsaglia and Tsang (2000); shapes below 1 by their boost. */
  gamma(shape: number, scale: number): number {
    if (shape < 1) return this.gamma(shape + 1, scale) * (1 - this.uniform()) ** (1 / shape);
    const d = shape - 1 / 3;
    const c = 1 / Math.sqrt(9 * d);
    for (;;) {
      const x = this.normal();
      const v = (1 + c * x) ** 3;
      if (v <= 0) continue;
      const u = 1 - this.uniform();
      if (Math.log(u) < 0.5 * x * x + d - d * v + d * Math.log(v)) return d * v * scale;
    }
  }

  /** An independent stream for one purpose. */
  fork(label: number): Random {
    return new Random(this.#next64() ^ (BigInt(label) * 0xd1342543de82ef95n));
  }
}
