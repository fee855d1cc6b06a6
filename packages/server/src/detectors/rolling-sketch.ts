import { LatencySketch } from "./latency-sketch.js";

/** The latest slices of time, and their sum. */
export class RollingSketch {
  readonly #slices: readonly LatencySketch[];
  readonly #total = new LatencySketch();
  #current = 0;

  constructor(numSlices: number) {
    this.#slices = Array.from({ length: numSlices }, () => new LatencySketch());
  }

  /** Of all slices. */
  get total(): LatencySketch {
    return this.#total;
  }

  add(ms: number): void {
    this.#slices[this.#current]!.add(ms);
    this.#total.add(ms);
  }

  addAll(sketch: LatencySketch): void {
    this.#slices[this.#current]!.addAll(sketch);
    this.#total.addAll(sketch);
  }

  /** Begins a slice; `onLeaving` sees the one that makes room for it. */
  rotate(onLeaving?: (slice: LatencySketch) => void): void {
    this.#current = (this.#current + 1) % this.#slices.length;
    const leaving = this.#slices[this.#current]!;
    if (leaving.count === 0) return;
    onLeaving?.(leaving);
    this.#total.removeAll(leaving);
    leaving.clear();
  }
}
