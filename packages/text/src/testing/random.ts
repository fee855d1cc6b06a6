import { mulberry32 } from "@octavo/protocol/testing/mulberry32";

export class TestRandom {
  /** In [0, 1). */
  readonly next: () => number;

  constructor(seed: number) {
    this.next = mulberry32(seed);
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
