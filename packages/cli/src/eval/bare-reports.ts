import {
  type CheckRow,
  type EvalReport,
  type GateConfig,
  gatherSpans,
  planEvaluation,
  unjudged,
} from "@octavo/evals";
import { interruptible } from "../interruptible.js";
import { type ConfigFlags, configFromFlags } from "./config-from-flags.js";
import type { RunnerFlags } from "./eval-rows.js";
import { openRunner } from "./open-runner.js";

/** A report without results. */
function bareReport(name: string, seed: number): EvalReport {
  return {
    format: "octavo.eval/1",
    name,
    startedAt: new Date().toISOString(),
    durationMs: 0,
    seed,
    targets: [],
    datasets: [],
    evaluators: [],
    calibrations: [],
    checks: [],
    gate: undefined,
    cases: [],
    numCases: 0,
    warnings: [],
  };
}

/** The report of a gate that no changed file concerns. */
export function skippedReport(config: GateConfig): EvalReport {
  const { name, seed } = config.file;
  const gate = unjudged(config, "skipped", "None of the changed files is one that this gate watches.");
  return { ...bareReport(name, seed), gate };
}

/** The report of a check on recorded spans, whose answers evaluators score where some are named. */
export async function reportOfSpans(
  row: CheckRow,
  files: readonly string[],
  settings: Readonly<Record<string, unknown>>,
  flags: RunnerFlags & ConfigFlags,
): Promise<EvalReport> {
  const started = performance.now();
  const { seed = 1, name, owner } = flags;
  row.checkSettings(settings);
  const unscored = new Map<string, number>();
  const observations = await interruptible(async (signal) => {
    const { spans: _, ...asked } = flags;
    const config = configFromFlags(asked, { recorded: "candidate" });
    const { evaluators } = await planEvaluation(config, {
      folder: process.cwd(),
      environment: process.env,
      signal,
    });
    const runner = openRunner(flags, config.file.judge);
    const onUnscored = (reason: string): void => void unscored.set(reason, (unscored.get(reason) ?? 0) + 1);
    const scoring = { evaluators, runner, signal, onUnscored };
    const gathered = gatherSpans(
      files.map((file) => {
        const [, condition = "candidate", path = file] = /^([A-Za-z][\w-]*)=(.+)$/.exec(file) ?? [];
        return { condition, path, owner };
      }),
      evaluators.length === 0 ? {} : { scoring },
    );
    try {
      return await gathered;
    } finally {
      await runner.close();
    }
  });
  return {
    ...bareReport(name ?? `${row.name}, from spans`, seed),
    durationMs: Math.round(performance.now() - started),
    datasets: files.map((file) => ({ name: file })),
    checks: [row.judge(observations, settings)],
    numCases: new Set(observations.map(({ caseId }) => caseId)).size,
    warnings: [...unscored].map(([reason, count]) => `${count} calls were not scored: ${reason}`),
  };
}
