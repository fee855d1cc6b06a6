import { type Interval, Random, requestsForQuantileBound } from "@octavo/statistics";
import type { IntervalAt } from "./invert-interval.js";

/** What was measured in one stretch of time under two conditions. */
export interface TimeBlock {
  readonly reference: readonly number[];
  readonly observed: readonly number[];
}

export interface QuantileRatio {
  readonly level: number;
  readonly reference: number;
  readonly observed: number;
  /** `observed / reference`. */
  readonly estimate: number;
  /** Two-sided; undefined with too few stretches. */
  readonly intervalAt: IntervalAt;
  /** Two-sided, of "the ratio is at most `margin`". */
  readonly pValueBeyond: (margin: number) => number | undefined;
}

export interface RatioOptions {
  readonly level: number;
  readonly resamples: number;
  readonly seed: number;
  /** Whether a stretch is the same arrivals under both conditions: then it is drawn as one. */
  readonly isPaired: boolean;
}

/** Fewer stretches say nothing about how others would have been. */
export const fewestBlocks = 8;

/**
 * Ratio of two quantiles with a bootstrap over stretches of time (Künsch 1989; Davison and Hinkley 1997, section 8.2):
 * latencies of neighbours depend on each other, so whole stretches are drawn. Percentile intervals.
 *
 * @returns undefined where one side is empty or its quantile is 0
 */
export function quantileRatio(
  blocks: readonly TimeBlock[],
  { level, resamples, seed, isPaired }: RatioOptions,
): QuantileRatio | undefined {
  const reference = new WeightedTail(
    blocks.map((block) => block.reference),
    level,
  );
  const observed = new WeightedTail(
    blocks.map((block) => block.observed),
    level,
  );
  const whole = new Float64Array(blocks.length).fill(1);
  const [before, after] = [reference.quantile(whole), observed.quantile(whole)];
  if (before === undefined || after === undefined || before <= 0) return undefined;
  const numBlocks = Math.min(reference.numBlocks, observed.numBlocks);
  const ratios = numBlocks < fewestBlocks ? [] : draw(blocks.length);
  return {
    level,
    reference: before,
    observed: after,
    estimate: after / before,
    intervalAt: (confidence) => percentileInterval(ratios, confidence),
    pValueBeyond(margin) {
      if (ratios.length === 0) return undefined;
      const within = ratios.findIndex((ratio) => ratio > margin);
      const count = within < 0 ? ratios.length : within;
      return Math.min(1, (2 * (count + 1)) / (ratios.length + 1));
    },
  };

  function draw(count: number): readonly number[] {
    const random = new Random(seed);
    const drawn: number[] = [];
    const weights = new Float64Array(count);
    const others = new Float64Array(count);
    for (let resample = 0; resample < resamples; resample++) {
      drawWeights(weights, random);
      if (!isPaired) drawWeights(others, random);
      const below = reference.quantile(weights);
      const above = observed.quantile(isPaired ? weights : others);
      if (below !== undefined && above !== undefined && below > 0) drawn.push(above / below);
    }
    return drawn.toSorted((a, b) => a - b);
  }
}

/** How often each stretch is drawn. */
export function drawWeights(weights: Float64Array, random: Random): void {
  weights.fill(0);
  for (let i = 0; i < weights.length; i++) {
    const drawn = random.integer(0, weights.length - 1);
    weights[drawn] = weights[drawn]! + 1;
  }
}

/** @param sorted ascending; fewer than 100 give no interval */
export function percentileInterval(sorted: readonly number[], confidence: number): Interval | undefined {
  if (sorted.length < 100) return undefined;
  const low = Math.floor(((1 - confidence) / 2) * (sorted.length + 1)) - 1;
  return [sorted[Math.max(0, low)]!, sorted[Math.min(sorted.length - 1, sorted.length - 1 - low)]!];
}

/**
 * The highest percentile that so many requests can bound from above: p99 from 368 on (at 95 % confidence), p90 from 36 on.
 * Of fewer, a percentile is their maximum, whatever it is called.
 */
export function levelFor(count: number, alpha: number): number | undefined {
  return [0.99, 0.9].find((level) => count >= requestsForTail(level, alpha));
}

/** Requests from which a percentile has a finite two-sided interval. */
export function requestsForTail(level: number, alpha: number): number {
  return requestsForQuantileBound(level, 1 - alpha / 2);
}

/** Quantiles of values under weights of their stretches: one sort, then a walk down from the greatest value. */
class WeightedTail {
  readonly numBlocks: number;
  readonly #level: number;
  readonly #sizes: Float64Array;
  readonly #descending: Float64Array;
  readonly #owners: Uint32Array;

  constructor(blocks: readonly (readonly number[])[], level: number) {
    this.#level = level;
    this.#sizes = Float64Array.from(blocks, (values) => values.length);
    this.numBlocks = blocks.filter((values) => values.length > 0).length;
    const values = Float64Array.from(blocks.flat());
    const owners = Uint32Array.from(blocks.flatMap((own, index) => own.map(() => index)));
    const order = Uint32Array.from(values.keys()).sort((a, b) => values[b]! - values[a]!);
    this.#descending = Float64Array.from(order, (index) => values[index]!);
    this.#owners = Uint32Array.from(order, (index) => owners[index]!);
  }

  /** The smallest value whose cumulative share reaches the level. */
  quantile(weights: Float64Array): number | undefined {
    let total = 0;
    for (let i = 0; i < weights.length; i++) total += weights[i]! * this.#sizes[i]!;
    if (total === 0) return undefined;
    const above = (1 - this.#level) * total * (1 + 1e-12);
    let seen = 0;
    for (let i = 0; i < this.#descending.length; i++) {
      seen += weights[this.#owners[i]!]!;
      if (seen > above) return this.#descending[i];
    }
    return this.#descending.at(-1);
  }
}
