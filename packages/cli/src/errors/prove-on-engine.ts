import { evaluatorTable, type ScheduledCase } from "@octavo/evals";
import {
  type FeedEntry,
  type FixProof,
  measuresOf,
  proveFix,
  type RecordedWorkload,
  replayOn,
  type ReplayRun,
  scheduleOf,
  type ServePatch,
  tokenScaleOf,
} from "@octavo/optimize";
import { evaluatorOf } from "../eval/eval-rows.js";
import { replayArguments, ReplayServer } from "./replay-server.js";

export interface EngineProofOptions {
  readonly entry: FeedEntry;
  readonly patch: ServePatch["set"];
  readonly workload: RecordedWorkload;
  readonly config: string | undefined;
  readonly evaluators: readonly string[] | undefined;
  readonly score: number;
  readonly pairs: number;
  readonly speedup: number;
  readonly seed: number;
  readonly leastImprovement: number;
  readonly signal: AbortSignal;
  readonly onPair?: (done: number) => void;
}

/** Proves a patch on `octavo serve` itself: every replay has a process of its own, with nothing in its cache. */
export async function proveOnEngine(options: EngineProofOptions): Promise<FixProof> {
  const { entry, patch, workload, config, pairs, speedup, seed, leastImprovement, signal, onPair } = options;
  const sides = { before: await replayArguments(config), after: await replayArguments(config, patch) };
  const own = entry.kind === "answer" && evaluatorTable.get(entry.cause) !== undefined ? [entry.cause] : [];
  const evaluators = evaluatorTable.create((options.evaluators ?? own).map(evaluatorOf));
  let schedule: readonly ScheduledCase[] | undefined;
  const run = async (args: readonly string[]): Promise<ReplayRun> => {
    await using server = await ReplayServer.start(args);
    const scale = await tokenScaleOf(server.target, signal);
    schedule ??= scheduleOf(workload, { scale, seed, speedup });
    return await replayOn(server.target, schedule, { evaluators, signal });
  };
  return proveFix({
    patch,
    on: "engine",
    workload,
    measures: measuresOf(
      entry,
      evaluators.map(({ name }) => name),
      options.score,
    ),
    before: () => run(sides.before),
    after: () => run(sides.after),
    pairs,
    standard: { leastImprovement },
    nowMs: Date.now(),
    ...(onPair !== undefined && { onPair }),
  });
}
