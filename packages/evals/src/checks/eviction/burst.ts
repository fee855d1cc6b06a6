import { binomialTail, clopperPearson } from "@octavo/statistics";
import type { Advice, Chart } from "../check.js";
import { points } from "../judging/loss-effect.js";
import { type EffectLimits, marginEffect, type TestedEffect } from "../judging/verdicts.js";
import type { Observation } from "../observation.js";
import type { Besides, SeenEviction } from "./disturbance.js";
import { memoryOf, riseSeconds } from "./memory.js";
import type { EvictionBurstSettings } from "./settings.js";

/** What a burst costs apart from answers: requests that lose their blocks and are computed again, or fail. */
export function burstFacts(observations: readonly Observation[], settings: EvictionBurstSettings): Besides {
  const inCurve = observations.filter(
    ({ condition }) => condition === settings.burst || condition === settings.filler,
  );
  const { effects, notes } = pressureOf(inCurve, settings);
  const memory = memoryOf(observations, settings);
  const rise = riseSeconds(memory);
  const mostUsed = Math.max(0, ...memory.map(({ usage }) => usage));
  return {
    effects,
    inCurve,
    figures: memoryFigure(observations, settings),
    notes: [
      ...notes,
      memory.length === 0 && "no observation says how full the KV cache was",
      rise !== undefined && `use of the KV cache rose from 40 % to 90 % in ${rise.toFixed(1)} s`,
      memory.length > 0 &&
        mostUsed < 0.9 &&
        `the KV cache was at most ${points(mostUsed)} % full: the burst did not press it`,
    ],
  };
}

const failedName = "requests that failed";
const preemptedName = "requests that were preempted";

/** What it means where the burst did too much of it. */
const pressedBy = {
  [preemptedName]: { says: "the KV cache is too small for this burst", of: "were preempted" },
  [failedName]: { says: "the server does not hold this burst", of: "failed" },
} as const;

interface Pressure {
  readonly effects: readonly TestedEffect[];
  readonly notes: readonly string[];
}

function pressureOf(inBurst: readonly Observation[], settings: EvictionBurstSettings): Pressure {
  if (inBurst.length === 0) return { effects: [], notes: ["nothing was sent within the burst"] };
  const failed = inBurst.filter(({ failureCode }) => failureCode !== undefined);
  const answered = inBurst.filter(({ failureCode }) => failureCode === undefined);
  const telling = answered.filter(({ preemptions }) => preemptions !== undefined);
  const preempted = telling.filter(({ preemptions = 0 }) => preemptions > 0);
  const { alpha } = settings;
  const effects = [
    shareEffect(failedName, failed.length, inBurst.length, { margin: settings.maxFailedShare, alpha }),
  ];
  const notes: string[] = [];
  if (telling.length > 0) {
    const limits = { margin: settings.maxPreemptedShare, alpha };
    effects.push(shareEffect(preemptedName, preempted.length, telling.length, limits));
    const recomputed = telling.reduce((sum, { recomputedTokens = 0 }) => sum + recomputedTokens, 0);
    notes.push(
      `${preempted.length} of ${telling.length} requests were preempted, and ${recomputed} tokens computed again`,
    );
  } else {
    notes.push("the server does not say which requests it preempted: the size of the pool is not judged");
  }
  const cases = answered.filter(({ condition }) => condition === settings.burst);
  const forgotten = cases.filter(({ evictedPrefixTokens = 0 }) => evictedPrefixTokens > 0);
  if (forgotten.length > 0)
    notes.push(
      `${forgotten.length} of ${cases.length} cases found that the burst had evicted their prompt from the prefix cache`,
    );
  if (failed.length > 0) {
    const codes = [...new Set(failed.map(({ failureCode }) => failureCode))].slice(0, 4).join(", ");
    notes.push(`${failed.length} of ${inBurst.length} requests of the burst failed: ${codes}`);
  }
  return { effects, notes };
}

function shareEffect(name: string, count: number, of: number, limits: EffectLimits): TestedEffect {
  return marginEffect(
    {
      name,
      method: "exact binomial test, Clopper-Pearson interval",
      estimate: count / of,
      interval: clopperPearson(count, of, 1 - limits.alpha),
      pValue: Math.min(1, 2 * binomialTail(count, of, limits.margin)),
    },
    limits,
  );
}

export function burstSummary({
  same: { compared, readable, differing },
  ofAnswers,
  ofBesides,
  verdict: overall,
}: SeenEviction): string {
  const unknown = readable === compared ? "" : ` (of ${compared - readable} more it is not known)`;
  const answers =
    compared === 0
      ? "no case was answered both on a quiet server and within the burst"
      : `${differing} of ${readable} answers differ within the burst${unknown}`;
  const pressed = ofBesides
    .filter(({ verdict }) => verdict === "fail")
    .map(({ name, estimate = 0, margin = 0 }) => {
      const { says, of } = pressedBy[name as keyof typeof pressedBy];
      return `${says}: ${points(estimate)} % of requests ${of} (accepted: ${points(margin)} %)`;
    })
    .join("; ");
  const bug = `${answers}: a burst must cost time only, so this is a bug of the engine`;
  if (ofAnswers.some(({ verdict }) => verdict === "fail"))
    return pressed === "" ? `${bug}.` : `${bug}; and ${pressed}.`;
  if (pressed !== "") return `${pressed}; ${answers}.`.replace(/^./, (first) => first.toUpperCase());
  if (compared === 0) return `Nothing was compared: ${answers}.`;
  if (overall === "pass") return `The burst cost time only: ${answers}, and few requests were preempted.`;
  return `Not decided: ${answers}; more cases are needed.`;
}

function memoryFigure(
  observations: readonly Observation[],
  settings: EvictionBurstSettings,
): readonly Chart[] {
  const memory = memoryOf(observations, settings);
  if (memory.length < 2) return [];
  const begin = (seen: readonly Observation[]) =>
    seen.reduce((least, one) => Math.min(least, one.scheduledEpochMs), Number.POSITIVE_INFINITY);
  const start = begin(observations);
  const inBurst = observations.filter(({ condition }) => condition === settings.filler);
  const from = begin(inBurst);
  const to = inBurst.reduce((most, one) => Math.max(most, one.scheduledEpochMs + one.durationMs), 0);
  return [
    {
      kind: "series",
      title: "KV cache in use",
      xLabel: "seconds",
      yLabel: "share",
      lines: [
        {
          label: "KV cache in use",
          points: memory.map(({ epochMs, usage }) => [(epochMs - start) / 1000, usage] as const),
        },
      ],
      ...(inBurst.length === 0
        ? {}
        : { spans: [{ label: "burst", from: (from - start) / 1000, to: (to - start) / 1000 }] }),
      threshold: 0.9,
    },
  ];
}

export const poolAdvice: readonly Advice[] = [
  {
    knob: "--gpu-memory-utilization, --num-gpu-blocks-override, --kv-cache-memory",
    change: "give the KV cache more memory",
    because: "requests lose blocks when those that run at once do not fit",
  },
  {
    knob: "--max-num-seqs",
    change: "run fewer requests at once",
    because: "a request that waits costs less than one that is computed twice",
  },
  {
    knob: "--kv-cache-dtype int8 (fp8 on vLLM)",
    change: "store twice the tokens in the same memory; run the quantization check on it",
    because: "the pool is counted in tokens",
  },
  {
    knob: "gateway route",
    change: "send long contexts to replicas of their own, or shorten them first",
    because: "one long prompt takes the blocks of many short ones",
  },
];
