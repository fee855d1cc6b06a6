import type { GapStatistics } from "./llm-span.js";

/** Ratio of a bucket's bounds; its middle is within 1 % of everything in it. */
const growth = 1.02;
const logGrowth = Math.log(growth);
/** Shorter gaps count as this long. */
const shortestMs = 1e-4;

/**
 * Summarises any number of gaps in bounded memory: exact count, mean and maximum; percentiles from buckets that grow
 * geometrically (DDSketch, Masson et al. 2019), so that their relative error is bounded.
 */
export class GapSketch {
  readonly #buckets = new Map<number, number>();
  #count = 0;
  #sumMs = 0;
  #maxMs = 0;

  /** Ignores what is no duration. */
  add(gapMs: number): void {
    if (!(gapMs >= 0) || gapMs === Number.POSITIVE_INFINITY) return;
    const bucket = Math.ceil(Math.log(Math.max(gapMs, shortestMs)) / logGrowth);
    this.#buckets.set(bucket, (this.#buckets.get(bucket) ?? 0) + 1);
    this.#count += 1;
    this.#sumMs += gapMs;
    if (gapMs > this.#maxMs) this.#maxMs = gapMs;
  }

  summary(): GapStatistics {
    const count = this.#count;
    if (count === 0) {
      return { count, meanMs: undefined, p50Ms: undefined, p99Ms: undefined, maxMs: undefined };
    }
    const sorted = [...this.#buckets].toSorted(([left], [right]) => left - right);
    return {
      count,
      meanMs: this.#sumMs / count,
      p50Ms: this.#quantile(sorted, 0.5),
      p99Ms: this.#quantile(sorted, 0.99),
      maxMs: this.#maxMs,
    };
  }

  #quantile(sorted: readonly (readonly [number, number])[], share: number): number {
    const rank = Math.ceil(share * this.#count);
    let seen = 0;
    for (const [bucket, count] of sorted) {
      seen += count;
      if (seen >= rank) return Math.min(this.#maxMs, (2 * growth ** bucket) / (growth + 1));
    }
    return this.#maxMs;
  }
}
