import { groupBy } from "@octavo/protocol";
import { mean, studentTQuantile } from "@octavo/statistics";
import type { Advice, Chart } from "../check.js";
import type { Observation, ObservedSlowGap } from "../observation.js";
import { byTime } from "../judging/time-blocks.js";

export interface CauseShare {
  readonly cause: string;
  /** Share of the time beyond the baseline. */
  readonly share: number;
  readonly gaps: number;
}

/** What long gaps were due to, by the serving records of the requests that had them. */
export function causesOf(observations: readonly Observation[], longFromMs: number): readonly CauseShare[] {
  const sums = new Map<string, { ms: number; gaps: number }>();
  let total = 0;
  for (const { slowGaps = [] } of observations)
    for (const { ms, usualMs = 0, cause } of slowGaps) {
      if (ms <= longFromMs) continue;
      const own = sums.get(cause) ?? { ms: 0, gaps: 0 };
      own.ms += ms - usualMs;
      own.gaps += 1;
      total += ms - usualMs;
      sums.set(cause, own);
    }
  return [...sums]
    .map(([cause, { ms, gaps }]) => ({ cause, share: total === 0 ? 0 : ms / total, gaps }))
    .toSorted((a, b) => b.share - a.share);
}

/** Conditions under which a slow stream was rerun: with the same neighbours, alone, and without the neighbour that took most compute time. */
export const replayConditions = {
  beside: "replay-beside",
  alone: "replay-alone",
  withoutOne: "replay-without-one",
} as const;

export interface Recovered {
  readonly repetitions: number;
  /** Longest gap of a turn with all neighbours less the longest one without, in ms. */
  readonly ms: number;
  readonly interval: readonly [number, number] | undefined;
}

/** What taking neighbours away gave back: blame by rerun. Student's interval over repetitions, which take turns. */
export function recoveredByReplay(
  observations: readonly Observation[],
  confidence: number,
  without: "alone" | "withoutOne" = "alone",
): Recovered | undefined {
  const beside = longestByTurn(observations, replayConditions.beside);
  const rest = longestByTurn(observations, replayConditions[without]);
  const repetitions = Math.min(beside.length, rest.length);
  if (repetitions === 0) return undefined;
  const differences = beside.slice(0, repetitions).map((ms, index) => ms - rest[index]!);
  const center = mean(differences);
  if (repetitions < 3) return { repetitions, ms: center, interval: undefined };
  const squares = differences.reduce((sum, value) => sum + (value - center) ** 2, 0);
  const error = Math.sqrt(squares / (repetitions - 1) / repetitions);
  const reach = error * studentTQuantile((1 + confidence) / 2, repetitions - 1);
  return { repetitions, ms: center, interval: [center - reach, center + reach] };
}

/** Streams of one turn began together and share its steps: their longest gap is one observation. */
function longestByTurn(observations: readonly Observation[], condition: string): readonly number[] {
  const own = observations.filter((seen) => seen.condition === condition && seen.gapsMs.length > 0);
  return [...groupBy(byTime(own), ({ scheduledEpochMs }) => scheduledEpochMs).values()].map((turn) =>
    turn.reduce((most, { gapsMs }) => Math.max(most, longestOf(gapsMs)), 0),
  );
}

function longestOf(gapsMs: readonly number[]): number {
  return gapsMs.reduce((most, ms) => Math.max(most, ms), 0);
}

/** The gaps around the slowest one, each the step that ended it, with the slowest lit. */
export function stepsAround(observations: readonly Observation[]): readonly Chart[] {
  let worst:
    | { readonly seen: Observation; readonly index: number; readonly slow: ObservedSlowGap | undefined }
    | undefined;
  let greatest = 0;
  for (const seen of observations) {
    const index = seen.gapsMs.indexOf(longestOf(seen.gapsMs));
    if (index < 0 || seen.gapsMs[index]! <= greatest) continue;
    greatest = seen.gapsMs[index]!;
    const slow = seen.slowGaps?.toSorted((a, b) => b.ms - a.ms)[0];
    worst = { seen, index, slow };
  }
  if (worst === undefined) return [];
  const { seen, index, slow } = worst;
  const from = Math.max(0, index - 12);
  let startMs = 0;
  const steps = seen.gapsMs.slice(from, index + 13).map((durationMs, offset) => {
    const isBlamed = from + offset === index;
    const step = {
      startMs,
      durationMs,
      prefillTokens: isBlamed ? (slow?.prefillTokens ?? 0) : 0,
      decodeTokens: Math.round(seen.batchSize ?? 1),
      isBlamed,
      label: isBlamed
        ? `${slow?.cause ?? "longest gap"}${slow?.culprits[0] === undefined ? "" : `, ${slow.culprits[0]}`}`
        : `output ${from + offset + 1}`,
    };
    startMs += durationMs;
    return step;
  });
  return [{ kind: "steps", title: `Around the longest gap, of ${seen.caseId}`, steps }];
}

const adviceByCause: Readonly<Record<string, Advice>> = {
  prefill_burst: {
    knob: "--max-num-batched-tokens",
    change:
      "lower it, or --long-prefill-token-threshold and --max-long-partial-prefills (vLLM: --max-num-partial-prefills); Octavo's --max-prefill-step-ms bounds what a step of prompts may take",
    because: "prompts of others are computed in the same steps as these tokens",
  },
  preemption: {
    knob: "--gpu-memory-utilization, --kv-cache-memory",
    change: "give the KV cache more memory, or lower --max-num-seqs",
    because: "sequences gave their blocks back and were computed again",
  },
  not_scheduled: {
    knob: "--scheduling-policy",
    change: "fair or priority, and a larger --max-num-seqs",
    because: "the sequences were left out of steps that went to others",
  },
  batch_growth: {
    knob: "--max-num-seqs",
    change: "lower it, or add replicas",
    because: "more sequences ran in a step than usual",
  },
  slow_compute: {
    knob: "the machine",
    change: "look for other processes, thermal limits, and --threads above the cores that are free",
    because: "the same work took longer",
  },
  host: {
    knob: "the event loop",
    change: "look at what else the process does: large bodies, logging, tokenising on the main thread",
    because: "the time went between steps",
  },
};

/** The causes' knobs, the greatest first; where no record says, what prefill in the batch suggests. */
export function jitterAdvice(
  causes: readonly CauseShare[],
  burst: readonly Observation[],
  prefillTokens: number,
): readonly Advice[] {
  const known = causes.flatMap(({ cause }) => adviceByCause[cause] ?? []);
  if (known.length > 0) return known;
  const isPrefill = burst.some((seen) => (seen.prefillTokensInBatch ?? 0) > prefillTokens);
  const first = adviceByCause[isPrefill ? "prefill_burst" : "not_scheduled"]!;
  const rest = ["prefill_burst", "batch_growth"].map((cause) => adviceByCause[cause]!);
  return [first, ...rest.filter((one) => one !== first)];
}
