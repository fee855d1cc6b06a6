import { jensenShannon, mean, Random, wassersteinOfCounts } from "@octavo/statistics";
import type { Hypothesis } from "../check.js";
import { BlockDraws } from "../judging/block-draws.js";
import { drawWeights, fewestBlocks } from "../judging/quantile-ratio.js";
import { marginEffect, type TestedEffect, unseenEffect } from "../judging/verdicts.js";
import type { Grid, TrafficBlock } from "./traffic-blocks.js";

export interface Sides {
  readonly production: readonly TrafficBlock[];
  readonly evaluation: readonly TrafficBlock[];
}

export interface ResamplingOptions {
  readonly alpha: number;
  readonly resamples: number;
  readonly seed: number;
}

/** A distance of 0 or more between the sides, under weights of their stretches; undefined where a side has nothing. */
type Distance = (production: Float64Array, evaluation: Float64Array, sides: Sides) => number | undefined;

/** What drift is measured by. A ratio is a distance too: its logarithm's size. */
interface Measure {
  /** Whether a replay has it from the recording. */
  readonly isCopied: boolean;
  readonly name: string;
  readonly unit: Hypothesis["unit"];
  readonly margin: number;
  readonly distance: Distance;
  readonly isRatio: boolean;
}

interface DriftMargins {
  readonly rateMargin: number;
  readonly dispersionMargin: number;
  readonly lengthMargin: number;
  readonly tenantMargin: number;
}

export function driftMeasures(grids: readonly Grid[], margins: DriftMargins): readonly Measure[] {
  return [
    {
      name: "arrival rate",
      unit: "ratio",
      margin: margins.rateMargin,
      distance: logRatio(rateOf),
      isRatio: true,
      isCopied: true,
    },
    {
      name: "dispersion of arrivals",
      unit: "ratio",
      margin: margins.dispersionMargin,
      distance: logRatio(dispersionOf),
      isRatio: true,
      isCopied: true,
    },
    ...grids.map((grid): Measure => {
      const { values } = grid;
      const isLength = values !== undefined;
      return {
        name: isLength ? `${grid.name}, in standard deviations` : grid.name,
        unit: isLength ? "ratio" : "share",
        margin: isLength ? margins.lengthMargin : margins.tenantMargin,
        distance: (production, evaluation, sides) => {
          const p = summed(sides.production, production, grid);
          const q = summed(sides.evaluation, evaluation, grid);
          if (p === undefined || q === undefined) return undefined;
          return isLength ? normedWasserstein(p, q, values) : jensenShannon([...p], [...q]);
        },
        isRatio: false,
        isCopied: grid.isCopied,
      };
    }),
  ];
}

/**
 * Distances between samples are never 0, however alike what they are drawn from. So the interval is centred on the distance
 * less what resampling alone adds to it, and drift is found only where reassigning the stretches to both sides at random would
 * seldom show as much (permutation test over stretches), beside the interval lying beyond the margin.
 */
export function driftEffect(measure: Measure, sides: Sides, options: ResamplingOptions): TestedEffect {
  const { name, unit, margin, distance, isRatio } = measure;
  const { alpha, resamples, seed } = options;
  const blocks = Math.min(filled(sides.production), filled(sides.evaluation));
  const seen = distance(ones(sides.production), ones(sides.evaluation), sides);
  if (seen === undefined || blocks < fewestBlocks) return unseenEffect(name, { margin, alpha }, unit);
  const random = new Random(seed);
  const drawn = resampled(distance, sides, resamples, random);
  const middle = mean(drawn);
  // resampling adds as much to the distance again as sampling did
  const corrected = Math.max(0, 2 * seen - middle);
  const centred = drawn.map((value) => value - middle + corrected);
  const draws = new BlockDraws(
    centred.map((value) => Math.max(0, value)),
    blocks,
  );
  const limit = isRatio ? Math.log(margin) : margin;
  const interval = draws.interval(1 - alpha);
  const beyond = draws.pValueBeyond(limit) ?? 1;
  // dealing again can only raise it
  const chance = beyond > alpha ? 0 : dealt(distance, sides, seen, resamples, random);
  const shown = (value: number) => (isRatio ? Math.exp(value) : value);
  return marginEffect(
    {
      name,
      method: "bootstrap and permutation of stretches of time",
      estimate: shown(corrected),
      interval: interval && [shown(interval[0]), shown(interval[1])],
      unit,
      pValue: Math.max(chance, beyond),
      isWithin: interval !== undefined && interval[1] <= limit,
    },
    { margin, alpha },
  );
}

function resampled(distance: Distance, sides: Sides, resamples: number, random: Random): readonly number[] {
  const production = ones(sides.production);
  const evaluation = ones(sides.evaluation);
  const drawn: number[] = [];
  for (let resample = 0; resample < resamples; resample++) {
    drawWeights(production, random);
    drawWeights(evaluation, random);
    const value = distance(production, evaluation, sides);
    if (value !== undefined) drawn.push(value);
  }
  return drawn;
}

/** How often stretches dealt out by chance are as far apart. */
function dealt(distance: Distance, sides: Sides, seen: number, resamples: number, random: Random): number {
  const all = [...sides.production, ...sides.evaluation];
  const count = sides.production.length;
  let asFar = 0;
  for (let resample = 0; resample < resamples; resample++) {
    const shuffled = random.shuffle(all);
    const mixed = { production: shuffled.slice(0, count), evaluation: shuffled.slice(count) };
    const value = distance(ones(mixed.production), ones(mixed.evaluation), mixed);
    if (value === undefined || value >= seen * (1 - 1e-12)) asFar += 1;
  }
  return (asFar + 1) / (resamples + 1);
}

function logRatio(
  of: (blocks: readonly TrafficBlock[], weights: Float64Array) => number | undefined,
): Distance {
  return (production, evaluation, sides) => {
    const a = of(sides.production, production);
    const b = of(sides.evaluation, evaluation);
    return a === undefined || b === undefined ? undefined : Math.abs(Math.log(a / b));
  };
}

/** Requests per second. */
export function rateOf(blocks: readonly TrafficBlock[], weights: Float64Array): number | undefined {
  const count = total(blocks, weights, (block) => block.count);
  const seconds = total(blocks, weights, (block) => block.durationMs / 1000);
  return count > 0 && seconds > 0 ? count / seconds : undefined;
}

/** Index of dispersion (Fano factor): variance over mean of arrivals per window, 1 for a Poisson process. */
export function dispersionOf(blocks: readonly TrafficBlock[], weights: Float64Array): number | undefined {
  const windows = total(blocks, weights, (block) => block.windows);
  const arrivals = total(blocks, weights, (block) => block.counted);
  const squares = total(blocks, weights, (block) => block.squares);
  if (windows < 2 || arrivals === 0) return undefined;
  const perWindow = arrivals / windows;
  const variance = (squares - windows * perWindow ** 2) / (windows - 1);
  return variance > 0 ? variance / perWindow : undefined;
}

/** Counts by bin; undefined where there is none. */
function summed(
  blocks: readonly TrafficBlock[],
  weights: Float64Array,
  { name, numBins }: Grid,
): Float64Array | undefined {
  const counts = new Float64Array(numBins);
  let count = 0;
  for (const [index, { histograms }] of blocks.entries()) {
    const weight = weights[index]!;
    if (weight === 0) continue;
    const own = histograms.get(name)!;
    for (let bin = 0; bin < numBins; bin++) {
      const added = weight * own[bin]!;
      counts[bin]! += added;
      count += added;
    }
  }
  return count === 0 ? undefined : counts;
}

/** In standard deviations of the first. */
function normedWasserstein(p: Float64Array, q: Float64Array, values: Float64Array): number {
  const area = wassersteinOfCounts([...values], [...p], [...q]);
  const pTotal = p.reduce((all, value) => all + value, 0);
  let [center, squares] = [0, 0];
  for (let bin = 0; bin < values.length; bin++) {
    center += (p[bin]! / pTotal) * values[bin]!;
    squares += (p[bin]! / pTotal) * values[bin]! ** 2;
  }
  const deviation = Math.sqrt(Math.max(0, squares - center ** 2));
  // lengths that hardly vary are not a yardstick: a tenth of their mean is one at least
  return area === 0 ? 0 : area / Math.max(deviation, Math.abs(center) / 10, Number.MIN_VALUE);
}

export function ones(blocks: readonly TrafficBlock[]): Float64Array {
  return new Float64Array(blocks.length).fill(1);
}

function filled(blocks: readonly TrafficBlock[]): number {
  return blocks.filter(({ count }) => count > 0).length;
}

function total(
  blocks: readonly TrafficBlock[],
  weights: Float64Array,
  of: (block: TrafficBlock) => number,
): number {
  let all = 0;
  for (const [index, block] of blocks.entries()) all += weights[index]! * of(block);
  return all;
}
