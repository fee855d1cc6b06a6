import { availableParallelism } from "node:os";
import { evaluatorTable, type ScheduledCase } from "@octavo/evals";
import {
  type FixProof,
  measuresOf,
  type PreparedReplay,
  proveFix,
  type RecordedWorkload,
  replayOn,
  scheduleOf,
  tokenScaleOf,
} from "@octavo/optimize";
import { evaluatorOf } from "../eval/eval-rows.js";
import { settingsOfArgs } from "./feed-files.js";
import { replayArguments, ReplayServer } from "./replay-server.js";
import type { ProofOptions } from "./proof-options.js";

export interface EngineProofOptions extends ProofOptions {
  readonly workload: RecordedWorkload;
  readonly config: string | undefined;
  readonly evaluators: readonly string[] | undefined;
  readonly score: number;
  readonly signal: AbortSignal;
}

/** Proves a patch on `octavo serve` itself: every replay has a process of its own, with nothing in its cache. */
export async function proveOnEngine(options: EngineProofOptions): Promise<FixProof> {
  const { entry, patch, workload, config, pairs, speedup, seed, leastImprovement, signal, onPair } = options;
  const sides = { before: await replayArguments(config), after: await replayArguments(config, patch) };
  const own = entry.kind === "answer" && evaluatorTable.get(entry.cause) !== undefined ? [entry.cause] : [];
  const evaluators = evaluatorTable.create((options.evaluators ?? own).map(evaluatorOf));
  let schedule: readonly ScheduledCase[] | undefined;
  const prepare = async (args: readonly string[]): Promise<PreparedReplay> => {
    const server = await ReplayServer.start(args);
    const dispose = (): Promise<void> => server[Symbol.asyncDispose]();
    try {
      const scale = await tokenScaleOf(server.target, signal);
      schedule ??= scheduleOf(workload, { scale, seed, speedup });
    } catch (thrown) {
      await dispose();
      throw thrown;
    }
    const sent = schedule;
    return {
      run: () => replayOn(server.target, sent, { evaluators, signal }),
      [Symbol.asyncDispose]: dispose,
    };
  };
  const threads = await Promise.all(Object.values(sides).map(threadsOf));
  return proveFix({
    patch,
    on: "engine",
    workload,
    measures: measuresOf(
      entry,
      evaluators.map(({ name }) => name),
      options.score,
    ),
    before: () => prepare(sides.before),
    after: () => prepare(sides.after),
    pairs,
    looks: options.looks,
    isTogether: threads.reduce((sum, count) => sum + count, 0) <= availableParallelism(),
    standard: { leastImprovement },
    nowMs: Date.now(),
    ...(onPair !== undefined && { onPair }),
  });
}

async function threadsOf(args: readonly string[]): Promise<number> {
  const { threads } = await settingsOfArgs(args);
  return typeof threads === "number" ? threads : availableParallelism();
}
