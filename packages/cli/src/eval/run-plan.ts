import {
  CaseJournal,
  type EvalReport,
  type EvaluationPlan,
  type EvaluationRunOptions,
  type GateConfig,
  ObservationJournal,
  type PlannedTarget,
  planEvaluation,
  ReplicaProcesses,
  type ScoredTargetConfig,
  runEvaluation,
} from "@octavo/evals";
import { interruptible } from "../interruptible.js";
import { checkOutputs } from "../output/files.js";
import { createEvalProgress } from "./eval-progress.js";
import type { OutputFlags, RunnerFlags } from "./eval-rows.js";
import { EvaluationEvents } from "./evaluation-events.js";
import { openRunner } from "./open-runner.js";
import { writeOutputs } from "./write-outputs.js";

export interface RunPlanOptions extends OutputFlags, RunnerFlags {
  /** What the configuration's paths are relative to. */
  readonly folder: string;
  /** Whether the expectations are judged, or only the checks. */
  readonly isGate: boolean;
  /** False if only checks send requests; default true. */
  readonly scoresCases?: boolean;
}

/** Runs a configuration from the command line: progress on standard error, results to where the flags say. */
export async function runConfig(config: GateConfig, options: RunPlanOptions): Promise<EvalReport> {
  const { html, json, junit, markdown } = options;
  checkOutputs({ html, json, junit, markdown });
  const progress = createEvalProgress(process.stderr);
  await using replicas = new ReplicaProcesses();
  const report = await interruptible(
    async (signal) => {
      const planned = await planEvaluation(config, {
        folder: options.folder,
        environment: process.env,
        signal,
        startReplica: (command, targetOf) => replicas.start(command, targetOf, signal),
      });
      const plan: EvaluationPlan = {
        ...planned,
        gate: options.isGate ? planned.gate : undefined,
        scoresCases: planned.scoresCases && options.scoresCases !== false,
      };
      await using resources = await openResources(plan, config, options);
      await using events = EvaluationEvents.open(options, (problem) =>
        process.stderr.write(`octavo: ${problem}\n`),
      );
      const { timeout } = config.file;
      return await runEvaluation(plan, {
        ...resources.given,
        signal,
        deadline: timeout === undefined ? undefined : AbortSignal.timeout(timeout),
        onProgress: progress.update,
        onRow: events && ((row) => events.add(row)),
      });
    },
    () => progress.interrupt(options.journal),
  ).finally(progress.end);
  await writeOutputs(report, options);
  return report;
}

async function openResources(
  plan: EvaluationPlan,
  config: GateConfig,
  { journal: path, ...flags }: RunnerFlags,
): Promise<
  AsyncDisposable & { readonly given: Pick<EvaluationRunOptions, "runner" | "journal" | "observations"> }
> {
  const asked = {
    targets: [
      [plan.baseline, config.file.targets.baseline] as const,
      [plan.candidate, config.file.targets.candidate] as const,
    ].map(([planned, written]) => askedOf(planned, written)),
    parameters: config.file.parameters,
    evaluators: plan.evaluators.map(({ name, spec, fingerprint }) => [name, spec, fingerprint]),
  };
  const replicas = plan.replicas.map((planned, index) =>
    askedOf(planned, config.file.targets.replicas?.[index]),
  );
  const journal = path === undefined ? undefined : await CaseJournal.open(path, asked);
  const observations =
    path === undefined || plan.checks.length === 0
      ? undefined
      : await ObservationJournal.open(`${path}.checks`, { ...asked, replicas });
  const runner = openRunner(flags, config.file.judge);
  return {
    given: { runner, journal, observations },
    async [Symbol.asyncDispose]() {
      await runner.close();
      await journal?.close();
      await observations?.[Symbol.asyncDispose]();
    },
  };
}

/** What a target's answers depend on beside the cases. Headers may hold secrets: the journals keep only a digest. */
function askedOf(planned: PlannedTarget | undefined, written: ScoredTargetConfig | undefined): unknown {
  if (written === undefined || "recorded" in written) return written;
  return planned && [planned.url, planned.model, written.extra_body, written.headers];
}
