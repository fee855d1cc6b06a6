import { OctavoError } from "@octavo/protocol";
import { mean } from "@octavo/statistics";
import { z } from "zod";
import { judgeFix, type FixStandard, type ReplayPair, usualConfidence } from "./judge-fix.js";
import type { ClusterMeasures } from "./measures.js";
import type { RecordedWorkload } from "./recorded-workload.js";
import type { ReplayRun } from "./replay-on-server.js";

const changeSchema = z.strictObject({
  measure: z.string(),
  unit: z.enum(["ms", "share"]),
  before: z.number(),
  after: z.number(),
  change: z.number(),
  interval: z.tuple([z.number(), z.number()]).readonly().optional(),
});

const costSchema = z.strictObject({
  seconds: z.number(),
  compute_seconds: z.number().optional(),
  /** In a simulated fleet. */
  replica_seconds: z.number().optional(),
  /** Through a gateway: what the calls cost at its targets' prices. */
  usd: z.number().optional(),
});

/** What replays said of a patch; kept with the cluster that it is to fix. */
export const fixProofSchema = z.strictObject({
  verdict: z.enum(["accepted", "rejected", "inconclusive"]),
  reason: z.string(),
  /** Settings by name; null: left out. */
  patch: z.record(z.string(), z.union([z.number(), z.string(), z.boolean(), z.null()])),
  target: changeSchema.optional(),
  guards: z.array(changeSchema).readonly(),
  /** Of one replay, on average. */
  cost: z.strictObject({ before: costSchema, after: costSchema }),
  requests: z.int().nonnegative(),
  with_prompts: z.int().nonnegative(),
  pairs: z.int().nonnegative(),
  on: z.enum(["engine", "simulator", "gateway"]),
  /** ms since 1970. */
  at: z.number(),
});
/** A `fixProofSchema`, read: verdict, changes with intervals, and costs. */
export type FixProof = z.output<typeof fixProofSchema>;

/** What replays the workload once, and is ready to. */
export interface PreparedReplay extends AsyncDisposable {
  run(): Promise<ReplayRun>;
}

/** Makes a replay ready, with other randomness for another pair. */
export type ReplaySide = (pair: number) => Promise<PreparedReplay>;

/** How a fix is proven by replay. */
export interface ProveFixOptions {
  readonly patch: FixProof["patch"];
  readonly on: FixProof["on"];
  readonly workload: RecordedWorkload;
  readonly measures: ClusterMeasures;
  readonly before: ReplaySide;
  readonly after: ReplaySide;
  /** Pairs after which the verdict is looked at. */
  readonly pairs: number;
  /** Looks, each after so many more pairs; the last of them only where the ones before were inconclusive. Default 1. */
  readonly looks?: number;
  /** Both of a pair run at the same time, so that whatever else the machine does slows both alike. Default: one after the other. */
  readonly isTogether?: boolean;
  readonly standard?: FixStandard;
  readonly nowMs: number;
  readonly onPair?: (done: number) => void;
}

/**
 * Replays without and with the patch, both at once or in turn, every other pair the other way round, so that what drifts meets both
 * alike. Several looks share the chance of error of the standard's confidence: the first has half of it, so that looking again does
 * not make it greater.
 */
export async function proveFix(options: ProveFixOptions): Promise<FixProof> {
  const { patch, on, workload, measures, standard, nowMs, looks = 1 } = options;
  const pairs: ReplayPair[] = [];
  const error = 1 - (standard?.confidence ?? usualConfidence);
  for (let look = 0; ; look++) {
    while (pairs.length < (look + 1) * options.pairs) {
      pairs.push(await onePair(options, pairs.length));
      options.onPair?.(pairs.length);
    }
    const share = looks === 1 ? 1 : look === 0 ? 0.5 : 0.5 / (looks - 1);
    const { target, ...verdict } = judgeFix(measures, pairs, workload, {
      ...standard,
      confidence: 1 - error * share,
    });
    // what the replay does not show, more of them do not show either
    const isSettled = verdict.verdict !== "inconclusive" || target === undefined || target.before === 0;
    if (!isSettled && look + 1 < looks) continue;
    return {
      ...verdict,
      ...(target !== undefined && { target }),
      patch,
      cost: {
        before: costOf(pairs.map((pair) => pair.before)),
        after: costOf(pairs.map((pair) => pair.after)),
      },
      requests: workload.requests.length,
      with_prompts: workload.numWithPrompts,
      pairs: pairs.length,
      on,
      at: nowMs,
    };
  }
}

async function onePair({ before, after, isTogether }: ProveFixOptions, pair: number): Promise<ReplayPair> {
  const isTurned = pair % 2 === 1;
  const sides = isTurned ? [after, before] : [before, after];
  const runs: ReplayRun[] = [];
  if (isTogether === true) runs.push(...(await atOnce(sides, pair)));
  else
    for (const side of sides) {
      await using prepared = await side(pair);
      runs.push(await prepared.run());
    }
  const [first, second] = runs as [ReplayRun, ReplayRun];
  return isTurned ? { before: second, after: first } : { before: first, after: second };
}

/** None begins before all are ready. */
async function atOnce(sides: readonly ReplaySide[], pair: number): Promise<readonly ReplayRun[]> {
  const prepared = await Promise.allSettled(sides.map((side) => side(pair)));
  try {
    const ready = prepared.map((one) => {
      if (one.status === "rejected") throw OctavoError.from(one.reason);
      return one.value;
    });
    return await Promise.all(ready.map((replay) => replay.run()));
  } finally {
    for (const one of prepared) if (one.status === "fulfilled") await one.value[Symbol.asyncDispose]();
  }
}

function costOf(runs: readonly ReplayRun[]): FixProof["cost"]["before"] {
  const computed = runs.flatMap(({ computeMs }) => computeMs ?? []);
  const dollars = runs.flatMap(({ usd }) => usd ?? []);
  const replicas = runs.flatMap(({ replicaSeconds }) => replicaSeconds ?? []);
  return {
    seconds: mean(runs.map(({ durationMs }) => durationMs)) / 1000,
    ...(computed.length === runs.length && { compute_seconds: mean(computed) / 1000 }),
    ...(replicas.length === runs.length && { replica_seconds: mean(replicas) }),
    ...(dollars.length === runs.length && { usd: mean(dollars) }),
  };
}
