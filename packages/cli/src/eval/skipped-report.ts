import { type EvalReport, type GateConfig, unjudged } from "@octavo/evals";

/** Of a gate that none of the changed files concerns. */
export function skippedReport(config: GateConfig): EvalReport {
  return {
    format: "octavo.eval/1",
    name: config.file.name,
    startedAt: new Date().toISOString(),
    durationMs: 0,
    seed: config.file.seed,
    targets: [],
    datasets: [],
    evaluators: [],
    calibrations: [],
    checks: [],
    gate: unjudged(config, "skipped", "None of the changed files is one that this gate watches."),
    cases: [],
    numCases: 0,
    warnings: [],
  };
}
