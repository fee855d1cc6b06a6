import { type CheckRow, type EvalReport, type GateConfig, gatherSpans, unjudged } from "@octavo/evals";
import type { TargetFlags } from "./eval-rows.js";

/** A report of nothing that was asked. */
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

/** Of a gate that none of the changed files concerns. */
export function skippedReport(config: GateConfig): EvalReport {
  const { name, seed } = config.file;
  const gate = unjudged(config, "skipped", "None of the changed files is one that this gate watches.");
  return { ...bareReport(name, seed), gate };
}

/** A check's judgement of spans that were recorded elsewhere, as a report. */
export async function reportOfSpans(
  row: CheckRow,
  files: readonly string[],
  settings: Readonly<Record<string, unknown>>,
  { seed, name }: Pick<TargetFlags, "seed" | "name">,
): Promise<EvalReport> {
  const started = performance.now();
  const report = bareReport(name ?? `${row.name}, from spans`, seed);
  row.checkSettings(settings);
  const observations = await gatherSpans(
    files.map((file) => {
      const [, condition = "candidate", path = file] = /^([A-Za-z][\w-]*)=(.+)$/.exec(file) ?? [];
      return { condition, path };
    }),
  );
  return {
    ...report,
    durationMs: Math.round(performance.now() - started),
    datasets: files.map((file) => ({ name: file })),
    checks: [row.judge(observations, settings)],
    numCases: new Set(observations.map(({ caseId }) => caseId)).size,
  };
}
