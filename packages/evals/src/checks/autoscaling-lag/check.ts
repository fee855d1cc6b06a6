import { quantile } from "@octavo/statistics";
import type { Advice, CheckResult, Chart, Hypothesis, MovedCase } from "../check.js";
import { defineCheck, type Judgement } from "../define-check.js";
import { collectAutoscalingLag } from "./collect.js";
import { swapConditions } from "../judging/placebos.js";
import type { Observation } from "../observation.js";
import { oneSidedNotes, scoresOfArrivals } from "../judging/arrival-scores.js";
import { intervalsFigure } from "../judging/figures.js";
import { requestsForTail, tailSampleSize } from "../judging/quantile-ratio.js";
import { byTime, pairArrivals, thinned, underCondition } from "../judging/time-blocks.js";
import { adviceAfter } from "../judging/undecided.js";
import { decide, nearestToMargin, overallVerdict } from "../judging/verdicts.js";
import { type Lag, lagOf } from "./lag.js";
import { saturationRule } from "./saturation.js";
import { type AutoscalingLagSettings, autoscalingLagSettings } from "./settings.js";
import {
  idleFailures,
  isFailed,
  isFallback,
  isTruncated,
  stateEffects,
  type StatePair,
  waitOf,
} from "./state-effects.js";

/** The same cases when idle and while replicas are missing. */
export const autoscalingLagCheck = defineCheck({
  name: "autoscaling-lag",
  question: "What does a burst cost before the replicas that it needs are there?",
  settings: autoscalingLagSettings,
  needs: ["cases", "startReplica"],
  collect: collectAutoscalingLag,
  placebo: ({ idle, scaling }) => swapConditions(idle, scaling),
  judge: judgeLag,
});

function judgeLag(observations: readonly Observation[], settings: AutoscalingLagSettings): Judgement {
  const idle = underCondition(observations, settings.idle);
  const scaling = underCondition(observations, settings.scaling);
  const scaled = underCondition(observations, settings.scaled);
  const pairs = pairStates(idle, scaling);
  const hypotheses = decide(stateEffects(pairs, settings), settings.alpha);
  const verdict = pairs.length === 0 ? "inconclusive" : overallVerdict(hypotheses);
  const waits = idle.flatMap(({ firstTokenMs }) => firstTokenMs ?? []);
  const limitMs = waits.length === 0 ? undefined : settings.firstTokenMargin * quantile(waits, 0.9);
  const size = tailSampleSize(pairs.length, settings, "pairs of the same case, idle and while scaling,");
  const lag = lagOf([...scaling, ...scaled], limitMs);
  return {
    verdict,
    summary: summarise(hypotheses, verdict, lag),
    ruleOfThumb: saturationRule(observations, settings),
    hypotheses,
    sampleSize: size,
    advice: adviceAfter(verdict, () => adviceOn(scaling), size),
    movedCases: movedCases(pairs),
    figures: [
      ...intervalsFigure("While replicas were missing, against idle", "", hypotheses),
      ...burstSeries(idle, [...scaling, ...scaled], lag, limitMs),
    ],
    notes: [
      ...notesOn(idle, scaling, scaled, pairs, settings.alpha),
      ...oneSidedNotes("", scoresOfArrivals(pairs, settings)),
    ],
  };
}

/** Crossover: a case that the burst had several times is held against its own idle answer each time. */
function pairStates(idle: readonly Observation[], scaling: readonly Observation[]): readonly StatePair[] {
  const own = new Map(idle.map((seen) => [seen.caseId, seen]));
  const once = pairArrivals(idle, scaling);
  if (once.length === scaling.length) return once;
  return scaling.flatMap((observed) => {
    const reference = own.get(observed.caseId);
    return reference === undefined ? [] : [{ caseId: observed.caseId, reference, observed }];
  });
}

function summarise(
  hypotheses: readonly Hypothesis[],
  verdict: CheckResult["verdict"],
  lag: Lag | undefined,
): string {
  const worst = nearestToMargin(hypotheses);
  if (worst === undefined) return "No case was answered both idle and while replicas were missing.";
  const figures = `${worst.name}: ${worst.estimate.toFixed(2)} (allowed ${worst.margin})`;
  const seconds = (ms: number | undefined) =>
    ms === undefined ? "not in the burst" : `after ${(ms / 1000).toFixed(1)} s`;
  const times =
    lag === undefined
      ? ""
      : ` A replica joined ${seconds(lag.joinedMs)}; first tokens were in time again ${seconds(lag.recoveredMs)}.`;
  const unseen = hypotheses.find(({ estimate }) => estimate === undefined);
  if (verdict === "inconclusive" && unseen !== undefined)
    return `Not decided: ${unseen.name}, could not be judged; nearest other ${figures}.${times}`;
  if (verdict === "pass") return `The burst cost nothing beyond its margins; nearest ${figures}.${times}`;
  return verdict === "fail"
    ? `Replicas come too late: ${figures}.${times}`
    : `Not decided: ${figures}.${times}`;
}

function adviceOn(scaling: readonly Observation[]): readonly Advice[] {
  const timedOut = scaling.filter(isFailed).length;
  return [
    {
      knob: "target_ongoing_requests",
      change: "lower it, and upscale_delay_s (Ray Serve); the HPA's target on waiting requests on Kubernetes",
      because:
        "a scaler that waits for a full queue starts loading when it is too late: 30 to 40 s pass by default before a replica even begins",
    },
    {
      knob: "min_replicas",
      change: "keep or warm replicas before the hour of the burst",
      because: "a replica that is there has no cold start",
    },
    {
      knob: "--weight-cache",
      change: "keep packed weights on the node's disk, and images pulled",
      because: "the rest of the lag is loading",
    },
    ...(timedOut > 0
      ? [
          {
            knob: "--max-queued-requests, --queue-timeout",
            change:
              "refuse early with Retry-After (vLLM: --max-num-queued-reqs; Ray Serve: max_queued_requests), and let clients retry elsewhere",
            because: `${timedOut} requests failed after waiting: a refusal costs a client less`,
          },
        ]
      : []),
    {
      knob: "fallback route",
      change: "send what exceeds the fleet to another deployment until it has grown",
      because: "it bounds the wait; measure what the other model's answers lose",
    },
  ];
}

/** Cases that failed, were cut off, or said something else. */
function movedCases(pairs: readonly StatePair[]): readonly MovedCase[] {
  return pairs.flatMap(({ caseId, reference, observed }) => {
    const before = reference.failureCode ?? reference.output;
    const after = observed.failureCode ?? observed.output;
    const what =
      isFailed(observed) && !isFailed(reference)
        ? "failed"
        : isTruncated(observed) && !isTruncated(reference)
          ? "cut off"
          : isFallback(observed) && !isFallback(reference)
            ? "answered by a fallback"
            : before !== after
              ? "another answer"
              : undefined;
    const lost = Object.entries(reference.scores).reduce(
      (sum, [name, score]) => sum + Math.max(0, (score ?? 0) - (observed.scores[name] ?? score ?? 0)),
      0,
    );
    const grave = what === "another answer" ? 0 : 1;
    return what === undefined ? [] : [{ caseId, what, before, after, severity: grave + lost }];
  });
}

function burstSeries(
  idle: readonly Observation[],
  burst: readonly Observation[],
  lag: Lag | undefined,
  limitMs: number | undefined,
): readonly Chart[] {
  if (lag === undefined || burst.length < 2) return [];
  const at = (seen: Observation) => (seen.scheduledEpochMs - lag.beginEpochMs) / 1000;
  const points = (of: (seen: Observation) => number | undefined, seen = burst) =>
    thinned(byTime(seen)).flatMap((one) => {
      const value = of(one);
      return value === undefined ? [] : [[at(one), value] as const];
    });
  const end = at(byTime(burst).at(-1)!);
  const depth = points(({ queueDepth, replicaCount }) =>
    queueDepth === undefined ? undefined : queueDepth / Math.max(1, replicaCount ?? 1),
  );
  return [
    {
      kind: "series",
      title: "First tokens in the burst",
      xLabel: "s since its beginning",
      yLabel: "ms",
      lines: [{ label: "time to the first token", points: points(waitOf) }],
      spans: [
        { label: "replicas missing", from: 0, to: lag.joinedMs === undefined ? end : lag.joinedMs / 1000 },
      ],
      ...(limitMs === undefined || idle.length === 0 ? {} : { threshold: limitMs }),
    },
    ...(depth.length === 0
      ? []
      : [
          {
            kind: "series" as const,
            title: "Saturation",
            xLabel: "s since the burst began",
            yLabel: "queue depth over replicas",
            lines: [{ label: "saturation", points: depth }],
            threshold: 16,
          },
        ]),
  ];
}

function notesOn(
  idle: readonly Observation[],
  scaling: readonly Observation[],
  scaled: readonly Observation[],
  pairs: readonly StatePair[],
  alpha: number,
): Judgement["notes"] {
  const isSilent = pairs.length > 0 && pairs.every(({ observed }) => observed.firstTokenMs === undefined);
  const answered = pairs.filter(({ reference, observed }) => !isFailed(reference) && !isFailed(observed));
  const changed = answered.filter(({ reference, observed }) => reference.output !== observed.output).length;
  return [
    idle.length === 0 && "There is no request from when nothing else was to do.",
    idleFailures(pairs.map(({ reference }) => reference)),
    isSilent && "No answer of the burst says when its first token came: stream them.",
    !isSilent &&
      pairs.length < requestsForTail(0.9, alpha) &&
      `${pairs.length} pairs bound no percentile of waiting, which takes ${requestsForTail(0.9, alpha)}.`,
    scaling.length === 0 && "There is no request from while replicas were missing.",
    scaled.length === 0 && "No request came after more replicas had joined: how it ends was not seen.",
    pairs.length < scaling.length &&
      `${scaling.length - pairs.length} requests of the burst have no idle answer to the same case.`,
    [...idle, ...scaling, ...scaled].some(
      ({ queueDepth, replicaCount }) => queueDepth === undefined || replicaCount === undefined,
    ) &&
      "Some requests do not say the queue's depth and the number of replicas when they came: they are in no bucket.",
    answered.length > 0 &&
      pairs.some(({ observed }) => observed.output !== undefined) &&
      (changed === 0
        ? `All ${answered.length} answers that came are the same as when idle.`
        : `${changed} of ${answered.length} answers differ from the ones when idle: waiting cannot do that with temperature 0 unless the engine's arithmetic depends on the batch.`),
  ];
}
