import { newcombeDifference } from "@octavo/statistics";
import type { Observation } from "../observation.js";
import { tooManyFailed } from "../judging/answered-latencies.js";
import { pValueByInversion } from "../judging/invert-interval.js";
import { unseenEffect } from "../judging/loss-effect.js";
import { levelFor, quantileRatio } from "../judging/quantile-ratio.js";
import { latencyBlocks } from "../judging/time-blocks.js";
import type { TestedEffect } from "../judging/verdicts.js";

export interface LatencyLimits {
  readonly firstTokenMargin: number;
  readonly e2eMargin: number;
  readonly failureMargin: number;
  readonly level?: number | undefined;
  readonly numBlocks: number;
  readonly resamples: number;
  readonly alpha: number;
  readonly seed: number;
}

/** A tenant's own traffic, alone and beside others. */
export interface OwnTraffic {
  readonly solo: readonly Observation[];
  readonly shared: readonly Observation[];
}

/** How much longer a tenant waits, and how much more often it fails, than when it is alone. */
export function latencyEffects(
  { solo, shared }: OwnTraffic,
  limits: LatencyLimits,
  label = "",
): readonly TestedEffect[] {
  const ratios = [
    {
      name: "time to the first token",
      of: (seen: Observation) => seen.firstTokenMs,
      margin: limits.firstTokenMargin,
    },
    { name: "whole answers", of: (seen: Observation) => seen.durationMs, margin: limits.e2eMargin },
  ];
  return [
    ...ratios.map(({ name, of, margin }) =>
      ratioEffect({ solo, shared }, `${label}${name}`, of, margin, limits),
    ),
    ...failureEffects({ solo, shared }, `${label}failed requests, more than alone`, limits),
  ];
}

/** Why a tenant's waiting cannot be held against its solo run; undefined where it can. */
export function soloFailures(solo: readonly Observation[]): string | undefined {
  return tooManyFailed(solo, `of ${solo[0]?.tenant ?? "the tenant"} alone`);
}

function ratioEffect(
  { solo, shared }: OwnTraffic,
  name: string,
  of: (seen: Observation) => number | undefined,
  margin: number,
  limits: LatencyLimits,
): TestedEffect {
  if (soloFailures(solo) !== undefined)
    return unseenEffect(`${name}, over solo`, margin, limits.alpha, "ratio");
  const { blocks, isPaired, count } = latencyBlocks(solo, shared, { of, numBlocks: limits.numBlocks });
  const level = limits.level ?? levelFor(count, limits.alpha);
  const base = { confidence: 1 - limits.alpha, margin, unit: "ratio" } as const;
  const ratio =
    level === undefined
      ? undefined
      : quantileRatio(blocks, { level, isPaired, resamples: limits.resamples, seed: limits.seed });
  if (level === undefined || ratio === undefined)
    return {
      ...base,
      name: `${name}, over solo`,
      method: `none: ${count} requests bound no percentile`,
      estimate: undefined,
      interval: undefined,
      pValue: undefined,
      isWithin: false,
    };
  const interval = ratio.intervalAt(1 - limits.alpha);
  return {
    ...base,
    name: `${name}, p${Math.round(1000 * level) / 10}, over solo`,
    method: `bootstrap over ${blocks.length} stretches of ${isPaired ? "the same arrivals" : "arrivals"}`,
    estimate: ratio.estimate,
    interval,
    pValue: ratio.pValueBeyond(margin),
    isWithin: interval !== undefined && interval[1] <= margin,
  };
}

/** Where none failed there is nothing to judge: that a rare failure does not exist takes more requests than latencies do. */
function failureEffects(
  { solo, shared }: OwnTraffic,
  name: string,
  { failureMargin, alpha }: LatencyLimits,
): readonly TestedEffect[] {
  const failed = (seen: readonly Observation[]) => ({
    successes: seen.filter(({ failureCode }) => failureCode !== undefined).length,
    trials: seen.length,
  });
  if (solo.length === 0 || failed(shared).successes === 0) return [];
  const at = (confidence: number) => newcombeDifference(failed(shared), failed(solo), confidence);
  const { estimate, interval } = at(1 - alpha);
  return [
    {
      name,
      method: "Newcombe's interval for two proportions",
      estimate,
      interval,
      confidence: 1 - alpha,
      margin: failureMargin,
      unit: "share",
      pValue: pValueByInversion((confidence) => at(confidence).interval, failureMargin),
      isWithin: interval[1] <= failureMargin,
    },
  ];
}
