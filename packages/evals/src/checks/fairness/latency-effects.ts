import type { Observation } from "../observation.js";
import { type Latency, tooManyFailed } from "../judging/answered-latencies.js";
import { moreOften } from "../judging/more-often.js";
import { levelFor, percentileName, quantileRatio, ratioEffect } from "../judging/quantile-ratio.js";
import { latencyBlocks } from "../judging/time-blocks.js";
import { type EffectLimits, type TestedEffect, unseenEffect } from "../judging/verdicts.js";

interface LatencyLimits {
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
  const own = { solo, shared };
  const { alpha, firstTokenMargin, e2eMargin, failureMargin } = limits;
  const wait = (name: string, of: Latency, margin: number): TestedEffect =>
    waitEffect(own, `${label}${name}`, of, { margin, alpha }, limits);
  return [
    wait("time to the first token", ({ firstTokenMs }) => firstTokenMs, firstTokenMargin),
    wait("whole answers", ({ durationMs }) => durationMs, e2eMargin),
    ...failureEffects(own, `${label}failed requests, more than alone`, { margin: failureMargin, alpha }),
  ];
}

/** Why a tenant's waiting cannot be held against its solo run; undefined where it can. */
export function soloFailures(solo: readonly Observation[]): string | undefined {
  return tooManyFailed(solo, `of ${solo[0]?.tenant ?? "the tenant"} alone`);
}

function waitEffect(
  { solo, shared }: OwnTraffic,
  name: string,
  of: Latency,
  limits: EffectLimits,
  { level: wanted, numBlocks, resamples, seed }: LatencyLimits,
): TestedEffect {
  if (soloFailures(solo) !== undefined) return unseenEffect(`${name}, over solo`, limits, "ratio");
  const { blocks, isPaired, count } = latencyBlocks(solo, shared, { of, numBlocks });
  const level = wanted ?? levelFor(count, limits.alpha);
  const ratio = level === undefined ? undefined : quantileRatio(blocks, { level, isPaired, resamples, seed });
  if (level === undefined || ratio === undefined)
    return unseenEffect(`${name}, over solo`, limits, "ratio", `none: ${count} requests bound no percentile`);
  const arrivals = isPaired ? "the same arrivals" : "arrivals";
  return ratioEffect(
    `${name}, ${percentileName(level)}, over solo`,
    `bootstrap over ${blocks.length} stretches of ${arrivals}`,
    ratio,
    limits,
  );
}

/** Where none failed there is nothing to judge: that a rare failure does not exist takes more requests than latencies do. */
function failureEffects(
  { solo, shared }: OwnTraffic,
  name: string,
  limits: EffectLimits,
): readonly TestedEffect[] {
  const failed = (seen: readonly Observation[]) => ({
    successes: seen.filter(({ failureCode }) => failureCode !== undefined).length,
    trials: seen.length,
  });
  if (solo.length === 0 || failed(shared).successes === 0) return [];
  return [moreOften(name, failed(shared), failed(solo), limits)];
}
