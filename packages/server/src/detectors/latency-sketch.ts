/** Bucket i holds values up to `shortest · growth^i`; its middle is within 2.5 % of everything in it. */
const growth = 1.05;
const logGrowth = Math.log(growth);
const shortestMs = 0.05;
/** The last one holds everything from 35 minutes on. */
export const numBuckets = 361;

/** Counts of times in buckets that grow geometrically: quantiles of any number of them in fixed memory. */
export class LatencySketch {
  readonly #counts = new Uint32Array(numBuckets);
  #count = 0;

  get count(): number {
    return this.#count;
  }

  add(ms: number): void {
    this.#counts[bucketOf(ms)]! += 1;
    this.#count += 1;
  }

  addAll(other: LatencySketch): void {
    for (let bucket = 0; bucket < numBuckets; bucket += 1) this.#counts[bucket]! += other.#counts[bucket]!;
    this.#count += other.#count;
  }

  /** Takes away what was added from `other`. */
  removeAll(other: LatencySketch): void {
    for (let bucket = 0; bucket < numBuckets; bucket += 1) this.#counts[bucket]! -= other.#counts[bucket]!;
    this.#count -= other.#count;
  }

  clear(): void {
    this.#counts.fill(0);
    this.#count = 0;
  }

  /** Undefined of nothing. */
  quantile(share: number): number | undefined {
    if (this.#count === 0) return undefined;
    const rank = Math.max(1, Math.ceil(share * this.#count));
    let seen = 0;
    for (let bucket = 0; bucket < numBuckets; bucket += 1) {
      seen += this.#counts[bucket]!;
      if (seen >= rank) return bucketMiddleMs(bucket);
    }
    return bucketMiddleMs(numBuckets - 1);
  }
}

export function bucketMiddleMs(bucket: number): number {
  return shortestMs * growth ** bucket * (2 / (growth + 1));
}

export function bucketOf(ms: number): number {
  if (!(ms > shortestMs)) return 0;
  return Math.min(numBuckets - 1, Math.ceil(Math.log(ms / shortestMs) / logGrowth));
}
