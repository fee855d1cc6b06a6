import { mean } from "@octavo/statistics";
import { z } from "zod";
import { judgeFix, type FixStandard, type ReplayPair } from "./judge-fix.js";
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

/** What replays said of a patch; kept with the cluster that it is to fix. */
export const fixProofSchema = z.strictObject({
  verdict: z.enum(["accepted", "rejected", "inconclusive"]),
  reason: z.string(),
  /** Settings by name; null: left out. */
  patch: z.record(z.string(), z.union([z.number(), z.string(), z.boolean(), z.null()])),
  target: changeSchema.optional(),
  guards: z.array(changeSchema).readonly(),
  /** Of one replay, on average. */
  cost: z.strictObject({
    before: z.strictObject({ seconds: z.number(), compute_seconds: z.number().optional() }),
    after: z.strictObject({ seconds: z.number(), compute_seconds: z.number().optional() }),
  }),
  requests: z.int().nonnegative(),
  with_prompts: z.int().nonnegative(),
  pairs: z.int().nonnegative(),
  on: z.enum(["engine", "simulator"]),
  /** ms since 1970. */
  at: z.number(),
});
export type FixProof = z.output<typeof fixProofSchema>;

/** Something that replays the workload, with other randomness for another pair. */
export type ReplaySide = (pair: number) => Promise<ReplayRun>;

export interface ProveFixOptions {
  readonly patch: FixProof["patch"];
  readonly on: FixProof["on"];
  readonly workload: RecordedWorkload;
  readonly measures: ClusterMeasures;
  readonly before: ReplaySide;
  readonly after: ReplaySide;
  readonly pairs: number;
  readonly standard?: FixStandard;
  readonly nowMs: number;
  readonly onPair?: (done: number) => void;
}

/** Replays without and with the patch in turn, every other pair the other way round, so that what drifts meets both alike. */
export async function proveFix(options: ProveFixOptions): Promise<FixProof> {
  const { patch, on, workload, measures, before, after, standard, nowMs } = options;
  const pairs: ReplayPair[] = [];
  for (let pair = 0; pair < options.pairs; pair++) {
    if (pair % 2 === 0) {
      const first = await before(pair);
      pairs.push({ before: first, after: await after(pair) });
    } else {
      const first = await after(pair);
      pairs.push({ before: await before(pair), after: first });
    }
    options.onPair?.(pair + 1);
  }
  const { target, ...verdict } = judgeFix(measures, pairs, workload, standard);
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

function costOf(runs: readonly ReplayRun[]): FixProof["cost"]["before"] {
  const computed = runs.flatMap(({ computeMs }) => computeMs ?? []);
  return {
    seconds: mean(runs.map(({ durationMs }) => durationMs)) / 1000,
    ...(computed.length === runs.length && { compute_seconds: mean(computed) / 1000 }),
  };
}
