import { Random } from "@octavo/statistics";
import type { Observation } from "../observation.js";
import { BlockDraws } from "../judging/block-draws.js";
import { drawWeights, fewestBlocks } from "../judging/quantile-ratio.js";
import { consecutive, byTime } from "../judging/time-blocks.js";
import { marginEffect, type TestedEffect } from "../judging/verdicts.js";
import type { ResamplingOptions } from "./drift-effects.js";
import { type Labelled, type TrafficPattern, patterns } from "./patterns.js";

export interface PatternSides {
  readonly production: readonly Labelled[];
  readonly evaluation: readonly Labelled[];
}

interface PatternMargins extends ResamplingOptions {
  readonly numBlocks: number;
  /** In which labels look around a request: requests of one such window share their labels. */
  readonly windowMs: number;
  readonly unseenPatternMargin: number;
  readonly scoreMargin: number;
}

/** Counts and sums of one stretch, by pattern: requests, and those with a score and their sum. */
interface PatternBlock {
  readonly requests: Float64Array;
  readonly scored: Float64Array;
  readonly sums: Float64Array;
}

/** Under weights of stretches; undefined where it cannot be said. */
type Statistic = (production: PatternBlock, evaluation: PatternBlock) => number | undefined;

/** Share of production's requests under patterns that the evaluation hardly ran: less than one in a hundred. */
export function unseenPatternEffect(sides: PatternSides, margins: PatternMargins): readonly TestedEffect[] {
  if (sides.production.length === 0 || sides.evaluation.length === 0) return [];
  const statistic: Statistic = (production, evaluation) => {
    const [all, run] = [total(production.requests), total(evaluation.requests)];
    if (all === 0 || run === 0) return undefined;
    let unseen = 0;
    for (const index of patterns.keys())
      if (evaluation.requests[index]! < 0.01 * run) unseen += production.requests[index]!;
    return unseen / all;
  };
  const name = "production's requests under patterns the evaluation never ran";
  return [effect(name, sides, undefined, statistic, margins.unseenPatternMargin, margins)];
}

/** What a score loses under production's mix of patterns, and what production itself scored less, where it was scored. */
export function scoreEffects(
  evaluator: string,
  sides: PatternSides,
  margins: PatternMargins,
): readonly TestedEffect[] {
  const has = (side: readonly Labelled[]) =>
    side.some(({ seen }) => (seen.scores[evaluator] ?? undefined) !== undefined);
  if (!has(sides.evaluation)) return [];
  const mixed = effect(
    `${evaluator}, lost under production's mix of patterns`,
    sides,
    evaluator,
    lostUnderMix,
    margins.scoreMargin,
    margins,
  );
  if (!has(sides.production)) return [mixed];
  const name = `${evaluator}, lost from evaluation to production`;
  // labels have no part in it
  const byRequest = { ...margins, windowMs: 0 };
  return [mixed, effect(name, sides, evaluator, lostInProduction, margins.scoreMargin, byRequest)];
}

/** The evaluation's mean score less that of its patterns weighted as production has them, as far as it ran them. */
function lostUnderMix(production: PatternBlock, evaluation: PatternBlock): number | undefined {
  let [weighted, weight] = [0, 0];
  for (const index of patterns.keys()) {
    const scored = evaluation.scored[index]!;
    if (scored === 0) continue;
    weighted += (production.requests[index]! * evaluation.sums[index]!) / scored;
    weight += production.requests[index]!;
  }
  const all = total(evaluation.scored);
  return weight === 0 || all === 0 ? undefined : total(evaluation.sums) / all - weighted / weight;
}

function lostInProduction(production: PatternBlock, evaluation: PatternBlock): number | undefined {
  const [before, after] = [total(evaluation.scored), total(production.scored)];
  return before === 0 || after === 0
    ? undefined
    : total(evaluation.sums) / before - total(production.sums) / after;
}

function effect(
  name: string,
  sides: PatternSides,
  evaluator: string | undefined,
  statistic: Statistic,
  margin: number,
  { alpha, resamples, seed, numBlocks, windowMs }: PatternMargins,
): TestedEffect {
  const production = blocksOf(sides.production, evaluator, { numBlocks, windowMs });
  const evaluation = blocksOf(sides.evaluation, evaluator, { numBlocks, windowMs });
  const whole = (blocks: readonly PatternBlock[]) => added(blocks, new Float64Array(blocks.length).fill(1));
  const seen = statistic(whole(production), whole(evaluation));
  const drawn: number[] = [];
  const random = new Random(seed);
  const [some, others] = [new Float64Array(production.length), new Float64Array(evaluation.length)];
  const isEnough = Math.min(production.length, evaluation.length) >= fewestBlocks && seen !== undefined;
  const rounds = isEnough ? resamples : 0;
  for (let round = 0; round < rounds; round++) {
    drawWeights(some, random);
    drawWeights(others, random);
    const value = statistic(added(production, some), added(evaluation, others));
    if (value !== undefined) drawn.push(value);
  }
  const draws = new BlockDraws(drawn, Math.min(production.length, evaluation.length));
  return marginEffect(
    {
      name,
      method: "bootstrap of stretches of neighbouring requests",
      estimate: seen,
      interval: draws.interval(1 - alpha),
      pValue: draws.pValueBeyond(margin),
    },
    { margin, alpha },
  );
}

/** As many stretches as are wanted, of a window's length or longer on average. */
function blocksOf(
  labelled: readonly Labelled[],
  evaluator: string | undefined,
  { numBlocks, windowMs }: Pick<PatternMargins, "numBlocks" | "windowMs">,
): readonly PatternBlock[] {
  const sorted = byTime(labelled.map(({ seen }) => seen));
  const lengthMs = (sorted.at(-1)?.scheduledEpochMs ?? 0) - (sorted[0]?.scheduledEpochMs ?? 0);
  const most = windowMs === 0 ? numBlocks : Math.max(1, Math.round(lengthMs / windowMs));
  const labels = new Map<Observation, TrafficPattern>(labelled.map(({ seen, pattern }) => [seen, pattern]));
  return consecutive(sorted, Math.min(numBlocks, most)).map((block) => {
    const sums = empty();
    for (const seen of block) {
      const index = patterns.indexOf(labels.get(seen)!);
      const score = evaluator === undefined ? undefined : (seen.scores[evaluator] ?? undefined);
      sums.requests[index]! += 1;
      if (score === undefined) continue;
      sums.scored[index]! += 1;
      sums.sums[index]! += score;
    }
    return sums;
  });
}

function added(blocks: readonly PatternBlock[], weights: Float64Array): PatternBlock {
  const all = empty();
  for (const [index, block] of blocks.entries()) {
    const weight = weights[index]!;
    for (const at of patterns.keys()) {
      all.requests[at]! += weight * block.requests[at]!;
      all.scored[at]! += weight * block.scored[at]!;
      all.sums[at]! += weight * block.sums[at]!;
    }
  }
  return all;
}

function empty(): PatternBlock {
  const zeros = () => new Float64Array(patterns.length);
  return { requests: zeros(), scored: zeros(), sums: zeros() };
}

function total(values: Float64Array): number {
  return values.reduce((sum, value) => sum + value, 0);
}
