/** Bucket i holds values up to `shortest · growth^i`; its middle is within 2.5 % of everything in it. */
const growth = 1.05;
const logGrowth = Math.log(growth);
const shortestMs = 0.05;
/** The last bucket holds everything from 35 minutes on. */
const numBuckets = 361;

/** Counts of times in buckets that grow geometrically: quantiles of any number of them in fixed memory. */
export class LatencySketch {
  readonly #counts = new Float64Array(numBuckets);
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

  /** Removes what was added from `other`. */
  removeAll(other: LatencySketch): void {
    for (let bucket = 0; bucket < numBuckets; bucket += 1) this.#counts[bucket]! -= other.#counts[bucket]!;
    this.#count -= other.#count;
  }

  /** Scales all counts, for quantiles of a recent past without slices of it. */
  decay(factor: number): void {
    for (let bucket = 0; bucket < numBuckets; bucket += 1) this.#counts[bucket]! *= factor;
    this.#count *= factor;
  }

  clear(): void {
    this.decay(0);
  }

  /** Undefined if empty. */
  quantile(share: number): number | undefined {
    return this.#count === 0 ? undefined : this.#at(Math.max(1, Math.ceil(share * this.#count)));
  }

  /** The quantile of what is not in `part`, a subset of this sketch; undefined where that counts less than `least`. */
  quantileWithout(part: LatencySketch | undefined, share: number, least: number): number | undefined {
    const count = this.#count - (part?.count ?? 0);
    return count < least ? undefined : this.#at(share * count, part);
  }

  #at(rank: number, part?: LatencySketch): number {
    let seen = 0;
    for (let bucket = 0; bucket < numBuckets; bucket += 1) {
      seen += Math.max(0, this.#counts[bucket]! - (part === undefined ? 0 : part.#counts[bucket]!));
      if (seen >= rank) return bucketMiddleMs(bucket);
    }
    return bucketMiddleMs(numBuckets - 1);
  }
}

/** Counts of the latest slices of time, and their total. */
export class RollingSketch {
  readonly #slices: readonly LatencySketch[];
  readonly total = new LatencySketch();
  #current = 0;

  constructor(numSlices: number) {
    this.#slices = Array.from({ length: numSlices }, () => new LatencySketch());
  }

  add(ms: number): void {
    this.#slices[this.#current]!.add(ms);
    this.total.add(ms);
  }

  addAll(sketch: LatencySketch): void {
    this.#slices[this.#current]!.addAll(sketch);
    this.total.addAll(sketch);
  }

  /** Begins a slice; `onLeaving` gets the oldest, which is dropped. */
  rotate(onLeaving?: (slice: LatencySketch) => void): void {
    this.#current = (this.#current + 1) % this.#slices.length;
    const leaving = this.#slices[this.#current]!;
    if (leaving.count === 0) return;
    onLeaving?.(leaving);
    this.total.removeAll(leaving);
    leaving.clear();
  }
}

function bucketMiddleMs(bucket: number): number {
  return shortestMs * growth ** bucket * (2 / (growth + 1));
}

function bucketOf(ms: number): number {
  if (!(ms > shortestMs)) return 0;
  return Math.min(numBuckets - 1, Math.ceil(Math.log(ms / shortestMs) / logGrowth));
}
