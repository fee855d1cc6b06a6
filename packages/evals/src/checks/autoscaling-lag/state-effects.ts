import type { Observation } from "../observation.js";
import { tooManyFailed } from "../judging/answered-latencies.js";
import { scoresOfArrivals } from "../judging/arrival-scores.js";
import { lossEffect } from "../judging/loss-effect.js";
import { comparePaired } from "../judging/paired-comparison.js";
import { levelFor, percentileName, quantileRatio, ratioEffect } from "../judging/quantile-ratio.js";
import { latencyBlocks, type TimedPair } from "../judging/time-blocks.js";
import { type TestedEffect, unseenEffect } from "../judging/verdicts.js";
import type { AutoscalingLagSettings } from "./settings.js";

/** The same case when nothing else was to do, and while replicas were missing. */
export type StatePair = TimedPair;

/**
 * By which paths a late replica can cost quality: requests that fail, answers that are cut off, another model that answers in
 * their place. What an answer says cannot depend on how long it waited, unless one of these happened or the engine is at fault.
 */
const paths = [
  { name: "requests that fail", margin: "failureMargin", of: isFailed },
  { name: "answers cut off", margin: "truncationMargin", of: isTruncated },
  { name: "answers of a fallback", margin: "fallbackMargin", of: isFallback },
] as const;

export function stateEffects(
  pairs: readonly StatePair[],
  settings: AutoscalingLagSettings,
): readonly TestedEffect[] {
  return [
    firstTokenEffect(pairs, settings),
    ...paths.flatMap(({ name, margin, of }) => {
      // an event that never happened cannot be judged: showing that it never does would take many more cases
      if (!pairs.some(({ reference, observed }) => of(observed) && !of(reference))) return [];
      const good = (seen: Observation) => (of(seen) ? 0 : 1);
      const scores = pairs.map(({ caseId, reference, observed }) => ({
        cluster: reference.cluster ?? caseId,
        before: good(reference),
        after: good(observed),
      }));
      const limits = { margin: settings[margin], alpha: settings.alpha };
      return [lossEffect(`${name}, more than idle`, comparePaired(scores)!, limits)];
    }),
    ...scoresOfArrivals(pairs, settings).flatMap(({ evaluator, compared, oneSided, isWhole }) => {
      const { scoreMargin: margin, alpha } = settings;
      const name = `${evaluator}, less than idle`;
      if (compared === undefined) return oneSided === 0 ? [] : [unseenEffect(name, { margin, alpha })];
      const effect = lossEffect(name, compared, { margin, alpha });
      return [{ ...effect, isWithin: effect.isWithin && isWhole }];
    }),
  ];
}

export function isFailed({ failureCode }: Observation): boolean {
  return failureCode !== undefined;
}

export function isTruncated({ finishReason, failureCode }: Observation): boolean {
  return finishReason === "length" || failureCode === "truncated";
}

export function isFallback({ tags }: Observation): boolean {
  return tags.includes("fallback");
}

function firstTokenEffect(pairs: readonly StatePair[], settings: AutoscalingLagSettings): TestedEffect {
  const { alpha, firstTokenMargin: margin, numBlocks, resamples, seed } = settings;
  const limits = { margin, alpha };
  const unseen = unseenEffect("time to the first token, over idle", limits, "ratio");
  if (idleFailures(pairs.map(({ reference }) => reference)) !== undefined) return unseen;
  // in the order of the burst: neighbours in it share what they waited for
  const { blocks, count } = latencyBlocks(
    pairs.map(({ observed }, index) => ({
      ...pairs[index]!.reference,
      caseId: String(index),
      scheduledEpochMs: observed.scheduledEpochMs,
    })),
    pairs.map(({ observed }, index) => ({ ...observed, caseId: String(index) })),
    { of: ({ firstTokenMs }) => firstTokenMs, numBlocks },
  );
  const level = settings.level ?? levelFor(count, alpha);
  if (level === undefined || count === 0) return unseen;
  const ratio = quantileRatio(blocks, { level, resamples, seed, isPaired: true });
  const name = `time to the first token, ${percentileName(level)}, over idle`;
  return ratioEffect(name, "bootstrap over stretches of the burst", ratio, limits);
}

/** Why waiting cannot be held against the requests when idle; undefined where it can. */
export function idleFailures(idle: readonly Observation[]): string | undefined {
  return tooManyFailed(idle, "when idle");
}

/** How long a client waited for the first token, or for none. Of the burst: when idle, only answers say what is usual. */
export function waitOf({ firstTokenMs, failureCode, durationMs }: Observation): number | undefined {
  return firstTokenMs ?? (failureCode === undefined ? undefined : durationMs);
}
