/** Buckets a factor of 1.05 apart from 0.1 ms: percentiles are within 5 %. */
const base = 1.05;
const lowestMs = 0.1;
const numBuckets = 360;
const logBase = Math.log(base);

/**
 * Percentiles of the latest latencies: a histogram of two halves, of which the older is dropped when the newer is full, so
 * that at least `half` and at most twice as many measurements count. Recording and reading take no allocation.
 */
export class LatencyWindow {
  readonly #half: number;
  #recent = new Uint32Array(numBuckets);
  #older = new Uint32Array(numBuckets);
  #numRecent = 0;
  #numOlder = 0;

  constructor(half = 256) {
    this.#half = half;
  }

  get count(): number {
    return this.#numRecent + this.#numOlder;
  }

  record(ms: number): void {
    if (this.#numRecent >= this.#half) {
      [this.#recent, this.#older] = [this.#older, this.#recent];
      this.#recent.fill(0);
      this.#numOlder = this.#numRecent;
      this.#numRecent = 0;
    }
    const bucket =
      ms <= lowestMs ? 0 : Math.min(numBuckets - 1, Math.ceil(Math.log(ms / lowestMs) / logBase));
    this.#recent[bucket] = (this.#recent[bucket] ?? 0) + 1;
    this.#numRecent += 1;
  }

  /** The upper end of the bucket that holds the quantile, in ms; undefined without measurements. */
  quantile(q: number): number | undefined {
    const { count } = this;
    if (count === 0) return undefined;
    let left = Math.max(1, Math.ceil(q * count));
    for (let bucket = 0; bucket < numBuckets; bucket += 1) {
      left -= (this.#recent[bucket] ?? 0) + (this.#older[bucket] ?? 0);
      if (left <= 0) return lowestMs * base ** bucket;
    }
    return undefined;
  }
}
