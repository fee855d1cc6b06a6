import type { CheckResult, Chart, Hypothesis, MovedCase, RuleOfThumb } from "../check.js";
import { defineCheck, type Judgement } from "../define-check.js";
import { collectJitter } from "./collect.js";
import { quietPlacebo } from "./placebo.js";
import type { Observation } from "../observation.js";
import { intervalsFigure } from "../judging/figures.js";
import { tailSampleSize } from "../judging/quantile-ratio.js";
import { byTime, thinned, underCondition } from "../judging/time-blocks.js";
import { adviceAfter } from "../judging/undecided.js";
import { decide, overallVerdict } from "../judging/verdicts.js";
import {
  causesOf,
  type CauseShare,
  jitterAdvice,
  type Recovered,
  recoveredByReplay,
  replayConditions,
  stepsAround,
} from "./causes.js";
import { judgeGaps } from "./gap-effects.js";
import { gapsOf, sameHours, slicesOf } from "./gap-slices.js";
import { type JitterSettings, jitterSettings } from "./settings.js";
import { windowRule } from "./windows.js";

/** The time between tokens under a burst, compared with the baseline. */
export const jitterCheck = defineCheck({
  name: "jitter",
  question: "Do tokens come late when prompts of others are computed beside them?",
  settings: jitterSettings,
  needs: ["cases"],
  collect: collectJitter,
  placebo: quietPlacebo,
  judge: judgeJitter,
});

function judgeJitter(observations: readonly Observation[], settings: JitterSettings): Judgement {
  const { recorded, current } = sidesOf(observations, settings);
  const { baseline, isSameHour } = sameHours(recorded, current);
  const slices = {
    baseline: slicesOf(baseline, settings.sliceMs),
    current: slicesOf(current, settings.sliceMs),
  };
  const { effects, longFromMs, usualP99Ms } = judgeGaps(slices, settings);
  const hypotheses = decide(effects, settings.alpha);
  const verdict = overallVerdict(hypotheses);
  const have = Math.min(slices.baseline.flat().length, slices.current.flat().length);
  const size = tailSampleSize(
    have,
    settings,
    `gaps on each side, in at least 8 slices of time (there are ${slices.baseline.length} and ${slices.current.length}),`,
  );
  const causes = longFromMs === undefined || verdict === "pass" ? [] : causesOf(current, longFromMs);
  return {
    verdict,
    summary: summarise(hypotheses, verdict, usualP99Ms, causes),
    ruleOfThumb: publishedRule(observations, settings),
    hypotheses,
    sampleSize: size,
    advice: adviceAfter(verdict, () => jitterAdvice(causes, current, settings.prefillTokens), size),
    movedCases: longFromMs === undefined ? [] : stalled(current, longFromMs),
    figures: [
      ...intervalsFigure("Gaps between tokens", "", hypotheses),
      ...gapSeries(recorded, current, longFromMs, settings.prefillTokens),
      ...stepsAround(current),
    ],
    notes: [
      ...notesOn(observations, recorded, current, settings),
      isSameHour && "The baseline is of the same hours of the day.",
      ...causes.map(
        ({ cause, share, gaps }) =>
          `${Math.round(100 * share)} % of the time lost in long gaps is ${cause} (${gaps} gaps).`,
      ),
      ...replayNotes(observations, settings.alpha),
    ],
  };
}

/** Over all judged traffic, in the rule's windows; the rule has its own baseline where none is named. */
function publishedRule(observations: readonly Observation[], settings: JitterSettings): RuleOfThumb {
  const baseline = underCondition(observations, settings.baseline);
  const current = underCondition(observations, settings.current);
  const all = baseline.length + current.length > 0 ? current : byTime(observations);
  return windowRule(baseline, all, settings);
}

interface Sides {
  readonly recorded: readonly Observation[];
  readonly current: readonly Observation[];
}

/**
 * The baseline and the judged traffic. Where nothing is called the baseline, as in the spans of one server, the last window is
 * judged against the time before it.
 */
function sidesOf(
  observations: readonly Observation[],
  { baseline, current, windowMs, baselineMs }: JitterSettings,
): Sides {
  const recorded = underCondition(observations, baseline);
  const judged = underCondition(observations, current);
  if (recorded.length > 0) return { recorded, current: judged };
  const all = judged.length > 0 ? judged : byTime(observations);
  const endOf = (seen: Observation) => seen.scheduledEpochMs + seen.durationMs;
  const fromMs = all.reduce((latest, seen) => Math.max(latest, endOf(seen)), 0) - windowMs;
  return {
    recorded: all.filter((seen) => endOf(seen) <= fromMs && endOf(seen) > fromMs - baselineMs),
    current: all.filter((seen) => endOf(seen) > fromMs),
  };
}

function replayNotes(observations: readonly Observation[], alpha: number): Judgement["notes"] {
  const all = recoveredByReplay(observations, 1 - alpha);
  const one = recoveredByReplay(observations, 1 - alpha, "withoutOne");
  return [
    all &&
      `Run again without its neighbours, the turn with the longest gap got ${gotBack(all)}: ${isProof(all) ? "the neighbours are to blame" : "not shown that they are to blame"}.`,
    one &&
      `Without the one neighbour that was computed most it got ${gotBack(one)}: ${isProof(one) ? "that one is to blame" : "the others would have done as much, or nobody did"}.`,
  ];
}

function gotBack({ ms, interval, repetitions }: Recovered): string {
  const range = interval === undefined ? "" : ` (${interval.map((end) => end.toFixed(1)).join(" to ")})`;
  return `${ms.toFixed(1)} ms${range} of it back, in ${repetitions} repetitions`;
}

function isProof({ interval }: Recovered): boolean {
  return interval !== undefined && interval[0] > 0;
}

function summarise(
  hypotheses: readonly Hypothesis[],
  verdict: CheckResult["verdict"],
  usualP99Ms: number | undefined,
  causes: readonly CauseShare[],
): string {
  const [sequential, ratio] = hypotheses;
  if (sequential?.estimate === undefined || usualP99Ms === undefined)
    return "There are no gaps between tokens to compare.";
  const figures = `${(100 * sequential.estimate).toFixed(2)} % of gaps are over the limit (allowed ${(100 * (sequential.margin ?? 0)).toFixed(2)} %), usual p99 ${usualP99Ms.toFixed(1)} ms`;
  const times = ratio?.estimate === undefined ? "" : `, now ${ratio.estimate.toFixed(2)} times that`;
  const cause = causes[0] === undefined ? "" : `; most of it ${causes[0].cause}`;
  if (verdict === "pass") return `Tokens come as evenly as usual: ${figures}${times}.`;
  return verdict === "fail"
    ? `Tokens stall: ${figures}${times}${cause}.`
    : `Not decided: ${figures}${times}.`;
}

/** Requests whose longest gap is long. */
function stalled(current: readonly Observation[], longFromMs: number): readonly MovedCase[] {
  return current.flatMap((seen) => {
    const longest = gapsOf(seen).reduce((most, { ms }) => Math.max(most, ms), 0);
    if (longest <= longFromMs) return [];
    const cause = seen.slowGaps?.toSorted((a, b) => b.ms - a.ms)[0]?.cause;
    return [
      {
        caseId: seen.caseId,
        what: cause ?? "longest gap",
        before: `up to ${longFromMs.toFixed(1)} ms`,
        after: `${longest.toFixed(1)} ms`,
        severity: longest / longFromMs,
      },
    ];
  });
}

function gapSeries(
  baseline: readonly Observation[],
  current: readonly Observation[],
  longFromMs: number | undefined,
  prefillTokens: number,
): readonly Chart[] {
  if (current.length === 0) return [];
  const beginMs = [...baseline, ...current].reduce(
    (least, { scheduledEpochMs }) => Math.min(least, scheduledEpochMs),
    Number.POSITIVE_INFINITY,
  );
  const line = (label: string, seen: readonly Observation[]) => ({
    label,
    points: thinned(seen.flatMap(gapsOf).toSorted((a, b) => a.atMs - b.atMs)).map(
      ({ atMs, ms }) => [(atMs - beginMs) / 1000, ms] as const,
    ),
  });
  const spans = current
    .filter((seen) => (seen.prefillTokensInBatch ?? 0) > prefillTokens)
    .slice(0, 50)
    .map(({ scheduledEpochMs, durationMs }) => ({
      label: `prefill in batch > ${prefillTokens}`,
      from: (scheduledEpochMs - beginMs) / 1000,
      to: (scheduledEpochMs + durationMs - beginMs) / 1000,
    }));
  return [
    {
      kind: "series",
      title: "Time between tokens",
      xLabel: "s",
      yLabel: "ms",
      lines: [line("usual", baseline), line("judged", current)],
      spans,
      ...(longFromMs === undefined ? {} : { threshold: longFromMs }),
    },
  ];
}

function notesOn(
  observations: readonly Observation[],
  baseline: readonly Observation[],
  current: readonly Observation[],
  settings: JitterSettings,
): Judgement["notes"] {
  const withoutGaps = [...baseline, ...current].filter(({ gapsMs }) => gapsMs.length === 0);
  const summaries = withoutGaps.filter(({ gapSummary }) => gapSummary !== undefined).length;
  const silent = withoutGaps.filter(
    ({ gapSummary, failureCode }) => gapSummary === undefined && failureCode === undefined,
  ).length;
  return [
    baseline.length === 0 &&
      `There is no request under the condition ${JSON.stringify(settings.baseline)}, nor one before the last ${settings.windowMs / 1000} s: what is usual is not known.`,
    current.length === 0 && `There is no request under the condition ${JSON.stringify(settings.current)}.`,
    summaries > 0 &&
      `${summaries} requests were recorded with a summary of their gaps alone: each counts with its longest.`,
    silent > 0 &&
      `${silent} requests say nothing of the time between tokens, and duration over tokens would hide a stall: stream them.`,
    current.length > 0 &&
      !current.some(({ slowGaps }) => slowGaps !== undefined) &&
      "No request says why its tokens were late (Octavo's serving record does): the cause is a guess.",
    observations.some(({ condition }) => condition === replayConditions.beside) &&
      recoveredByReplay(observations, 0.95) === undefined &&
      "The slowest stream was sent again, but not both with and without its neighbours.",
  ];
}
