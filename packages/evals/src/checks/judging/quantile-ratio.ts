import {
  type ClusterStatistic,
  type Interval,
  Random,
  requestsForQuantileBound,
  WeightedClusters,
} from "@octavo/statistics";
import type { SampleSize } from "../check.js";
import { BlockDraws } from "./block-draws.js";
import { type EffectLimits, marginEffect, type TestedEffect } from "./verdicts.js";

/** What was measured in one stretch of time under two conditions. */
export interface TimeBlock {
  readonly reference: readonly number[];
  readonly observed: readonly number[];
}

interface QuantileRatio {
  readonly level: number;
  readonly reference: number;
  readonly observed: number;
  /** `observed / reference`. */
  readonly estimate: number;
  /** Two-sided; undefined with too few stretches. */
  readonly intervalAt: (confidence: number) => Interval | undefined;
  /** Two-sided, of "the ratio is at most `margin`". */
  readonly pValueBeyond: (margin: number) => number | undefined;
}

interface RatioOptions {
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
 * latencies of neighbours depend on each other, so whole stretches are drawn. Drawn are logarithms: a ratio has no zero.
 *
 * @returns undefined where one side is empty or its quantile is 0
 */
export function quantileRatio(
  blocks: readonly TimeBlock[],
  { level, resamples, seed, isPaired }: RatioOptions,
): QuantileRatio | undefined {
  const reference = new Side(
    blocks.map((block) => block.reference),
    level,
  );
  const observed = new Side(
    blocks.map((block) => block.observed),
    level,
  );
  const [before, after] = [reference.quantile(), observed.quantile()];
  if (!(before > 0 && after > 0)) return undefined;
  const numBlocks = Math.min(reference.numFilled, observed.numFilled);
  const draws = new BlockDraws(numBlocks < fewestBlocks ? [] : drawn(), numBlocks);
  return {
    level,
    reference: before,
    observed: after,
    estimate: after / before,
    intervalAt(confidence) {
      const logs = draws.interval(confidence);
      return logs && [Math.exp(logs[0]), Math.exp(logs[1])];
    },
    pValueBeyond: (margin) => draws.pValueBeyond(Math.log(margin)),
  };

  function drawn(): readonly number[] {
    const random = new Random(seed);
    // the same stream again draws the same stretches
    const other = isPaired ? new Random(seed) : new Random(seed).fork(1);
    const logs: number[] = [];
    for (let resample = 0; resample < resamples; resample++) {
      const ratio = observed.resampled(other) / reference.resampled(random);
      if (ratio > 0 && Number.isFinite(ratio)) logs.push(Math.log(ratio));
    }
    return logs;
  }
}

/** A ratio against its margin; without one, an effect of which nothing was seen. */
export function ratioEffect(
  name: string,
  method: string,
  ratio: QuantileRatio | undefined,
  limits: EffectLimits,
): TestedEffect {
  return marginEffect(
    {
      name,
      method,
      estimate: ratio?.estimate,
      interval: ratio?.intervalAt(1 - limits.alpha),
      unit: "ratio",
      pValue: ratio?.pValueBeyond(limits.margin),
    },
    limits,
  );
}

/** `p99`, `p99.9`. */
export function percentileName(level: number): string {
  return `p${Math.round(1000 * level) / 10}`;
}

/** One condition's values, by stretch. */
class Side {
  readonly numFilled: number;
  readonly #clusters: WeightedClusters;
  readonly #quantile: readonly ClusterStatistic[];

  constructor(blocks: readonly (readonly number[])[], level: number) {
    this.numFilled = blocks.filter((values) => values.length > 0).length;
    this.#clusters = new WeightedClusters(blocks);
    this.#quantile = [{ kind: "quantile", level }];
  }

  /** NaN of nothing. */
  quantile(): number {
    return this.#clusters.evaluate(this.#quantile)[0]!;
  }

  resampled(random: Random): number {
    this.#clusters.resample(random);
    return this.quantile();
  }
}

/** How often each stretch is drawn. */
export function drawWeights(weights: Float64Array, random: Random): void {
  weights.fill(0);
  for (let i = 0; i < weights.length; i++) {
    const index = random.integer(0, weights.length - 1);
    weights[index] = weights[index]! + 1;
  }
}

/**
 * The highest percentile that so many requests can bound from above: p99 from 368 on (at 95 % confidence), p90 from 36 on.
 * Below that sample size a percentile is the sample's maximum, whatever it is called.
 */
export function levelFor(count: number, alpha: number): number | undefined {
  return [0.99, 0.9].find((level) => count >= requestsForTail(level, alpha));
}

/** Requests from which a percentile has a finite two-sided interval. */
export function requestsForTail(level: number, alpha: number): number {
  return requestsForQuantileBound(level, 1 - alpha / 2);
}

/** For checks that judge a p99: says how many `what` bound one. */
export function tailSampleSize(
  have: number,
  { alpha, power }: { readonly alpha: number; readonly power: number },
  what: string,
): SampleSize {
  const basis = `${what} from which a p99 has a finite bound at ${100 * (1 - alpha)} % confidence`;
  return { have, needed: requestsForTail(0.99, alpha), alpha, power, basis };
}
