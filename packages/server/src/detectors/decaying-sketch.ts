import { bucketMiddleMs, bucketOf, numBuckets } from "./latency-sketch.js";

/** Counts of times in buckets, the older the lighter: quantiles of the recent past without slices of it. */
export class DecayingSketch {
  readonly #weights = new Float64Array(numBuckets);
  #weight = 0;

  add(ms: number): void {
    this.#weights[bucketOf(ms)]! += 1;
    this.#weight += 1;
  }

  /** Makes everything so far lighter by `factor`. */
  decay(factor: number): void {
    for (let bucket = 0; bucket < numBuckets; bucket += 1) this.#weights[bucket]! *= factor;
    this.#weight *= factor;
  }

  /** Of what is here and not in `part`, which is all here; undefined where that weighs less than `least`. */
  quantileWithout(part: DecayingSketch, share: number, least: number): number | undefined {
    const weight = this.#weight - part.#weight;
    if (weight < least) return undefined;
    let seen = 0;
    for (let bucket = 0; bucket < numBuckets; bucket += 1) {
      seen += Math.max(0, this.#weights[bucket]! - part.#weights[bucket]!);
      if (seen >= share * weight) return bucketMiddleMs(bucket);
    }
    return bucketMiddleMs(numBuckets - 1);
  }
}
