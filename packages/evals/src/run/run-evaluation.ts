import { OctavoError } from "@octavo/protocol";
import { checkNamed, type CheckName } from "../checks/table.js";
import type { CheckResult } from "../checks/check.js";
import type { TestBed } from "../checks/test-bed.js";
import type { EvalCase } from "../cases/eval-case.js";
import type { Dataset } from "../datasets/dataset.js";
import { limitDataset } from "../datasets/limit-dataset.js";
import type { Evaluator } from "../evaluators/evaluator.js";
import type { GateConfig } from "../gate/config.js";
import { exitCodes, outcomeOf } from "../gate/exit-codes.js";
import type { GateResult } from "../gate/gate-result.js";
import { judgeGate, unjudged } from "../gate/judge-gate.js";
import { Measurements, type Prices } from "../gate/measurements.js";
import { KeptCases } from "../report/kept-cases.js";
import type { EvalReport, ReportCalibration, ReportTarget } from "../report/report.js";
import { calibrateEvaluator, reportCalibration } from "../judges/calibrate-evaluator.js";
import type { Runner } from "../runners/runner.js";
import type { Target } from "../targets/target.js";
import type { ObservationJournal } from "../checks/collecting/observation-journal.js";
import type { CaseJournal } from "./case-journal.js";
import type { CaseRow } from "./case-row.js";
import { JudgingTally } from "./judging-tally.js";
import { type CaseProgress, runCases } from "./run-cases.js";
import { summariseEvaluators } from "./summarise.js";

/** What a run does: answers to score, checks to make, and a gate to judge by. */
export interface EvaluationPlan {
  readonly name: string;
  readonly seed: number;
  readonly candidate: PlannedTarget;
  readonly baseline: PlannedTarget | undefined;
  readonly replicas: readonly PlannedTarget[];
  readonly startReplica: (() => Promise<Target>) | undefined;
  readonly datasets: readonly Dataset[];
  readonly evaluators: readonly Evaluator[];
  /** Answers that people labelled, to hold judges against. */
  readonly labels?: Dataset;
  readonly checks: readonly { readonly name: CheckName; readonly settings: unknown }[];
  /** Undefined: the checks alone decide. */
  readonly gate: GateConfig | undefined;
  /** False: only checks ask the targets. */
  readonly scoresCases: boolean;
  readonly concurrency: number;
  readonly prices: Prices | undefined;
  readonly maxReportedCases: number;
  /** Cases that checks have to choose from. */
  readonly maxCheckCases: number;
  readonly warnings: readonly string[];
}

/** A target of a plan, with where it is. */
export interface PlannedTarget {
  readonly target: Target;
  readonly url: string;
  readonly model: string | undefined;
}

/** How far a run has come: its cases first, then each check. */
export type EvaluationProgress =
  | ({ readonly phase: "cases" } & CaseProgress)
  | {
      readonly phase: "check";
      readonly check: CheckName;
      readonly index: number;
      readonly count: number;
      readonly done: number;
      readonly total: number | undefined;
      /** Once it is judged. */
      readonly result?: CheckResult;
    };

/** What a planned run needs beside its plan. */
export interface EvaluationRunOptions {
  readonly runner: Runner;
  readonly signal: AbortSignal;
  /** Aborted when the run's time is over: what was measured by then is reported. */
  readonly deadline?: AbortSignal | undefined;
  readonly journal?: CaseJournal | undefined;
  /** Journal of the checks. */
  readonly observations?: ObservationJournal | undefined;
  readonly onProgress?: (progress: EvaluationProgress) => void;
  /** Called with each case as it is scored. */
  readonly onRow?: ((row: CaseRow) => void) | undefined;
}

/**
 * Runs a plan. Under a gate, what goes wrong on the way (a target that is away, a dataset that is broken, time that is over)
 * is the gate's outcome, beside all that was found by then; without one it is thrown.
 */
export async function runEvaluation(
  plan: EvaluationPlan,
  options: EvaluationRunOptions,
): Promise<EvalReport> {
  const startedAt = new Date();
  const measurements = new Measurements(plan.prices);
  const kept = new KeptCases(plan.maxReportedCases);
  const judging = new JudgingTally();
  const lost = new Map<string, { readonly message: string }>();
  const checks: CheckResult[] = [];
  const calibrations: ReportCalibration[] = [];
  const warnings = [...plan.warnings];
  const judged = plan.evaluators.filter(({ needsJudge }) => needsJudge).map(({ name }) => name);
  const targets = [...(plan.baseline === undefined ? [] : ["baseline"]), "candidate"];
  const signal =
    options.deadline === undefined ? options.signal : AbortSignal.any([options.signal, options.deadline]);
  let gate: GateResult | undefined;
  try {
    const notMade = await measure(
      plan,
      { ...options, signal },
      (row) => {
        measurements.add(row);
        kept.add(row);
        judging.add(row);
        for (const [name, { answer }] of Object.entries(row.answers))
          if (answer.failure !== undefined && !lost.has(name)) lost.set(name, answer.failure);
        options.onRow?.(row);
      },
      checks,
    );
    for (const evaluator of plan.evaluators) {
      if (plan.labels === undefined || evaluator.judge === undefined) continue;
      const calibration = await calibrateEvaluator(evaluator, plan.labels.cases(), { signal });
      const row = reportCalibration(calibration, measurements.passes("candidate", evaluator.name));
      if (row !== undefined) calibrations.push(row);
      const { report } = calibration;
      const said = report.status === "refused" ? [report.reason] : report.warnings;
      warnings.push(...said.map((warning) => `labels of ${evaluator.name}: ${warning}`));
    }
    gate = plan.gate && judgeGate(plan.gate, { measurements, checks, judged, targets });
    if (gate !== undefined && notMade !== undefined && gate.outcome !== "fail") {
      const outcome = outcomeOf(notMade.code) ?? "inconclusive";
      gate = { ...gate, outcome, exitCode: exitCodes[outcome], summary: notMade.message };
    }
  } catch (thrown) {
    const error = endOf(thrown, options);
    const outcome = outcomeOf(error.code);
    if (plan.gate === undefined || outcome === undefined) throw error;
    gate = unjudged(plan.gate, outcome, error.message);
  }
  for (const name of targets) {
    const numFailed = measurements.failures(name).filter((value) => value === 1).length;
    const first = lost.get(name)?.message;
    if (numFailed > 0)
      warnings.push(
        `${numFailed} of ${kept.numSeen} answers of ${name} never came: in pass rates they count as not passed${first === undefined ? "" : `; the first: ${first}`}`,
      );
  }
  warnings.push(...judging.warnings());
  for (const { skipped, name } of plan.datasets)
    for (const [reason, count] of Object.entries(skipped?.() ?? {}))
      warnings.push(`${count} cases of ${name} were left out: ${reason}`);
  return {
    format: "octavo.eval/1",
    name: plan.name,
    startedAt: startedAt.toISOString(),
    durationMs: Date.now() - startedAt.getTime(),
    seed: plan.seed,
    targets: reportTargets(plan),
    datasets: plan.datasets.map(({ name, prompts }) => {
      const asked = prompts?.() ?? [];
      return asked.length === 0 ? { name } : { name, prompts: asked };
    }),
    evaluators: plan.scoresCases
      ? summariseEvaluators(
          measurements,
          plan.evaluators.map(({ name }) => name),
          targets,
          plan.seed,
        )
      : [],
    calibrations,
    ...judging.report(plan.evaluators),
    checks,
    gate,
    cases: kept.rows,
    numCases: kept.numSeen,
    warnings,
  };
}

/** Resolves to why a check could not be made, where one of several could not: the others are made all the same. */
async function measure(
  plan: EvaluationPlan,
  { runner, signal, journal, observations, onProgress }: EvaluationRunOptions,
  onRow: (row: CaseRow) => void,
  checks: CheckResult[],
): Promise<OctavoError | undefined> {
  const targets = [plan.baseline, plan.candidate].flatMap((planned) => planned?.target ?? []);
  if (plan.scoresCases)
    for await (const row of runCases({
      datasets: plan.datasets,
      targets,
      evaluators: plan.evaluators,
      runner,
      concurrency: plan.concurrency,
      signal,
      journal,
      onProgress: (progress) => onProgress?.({ phase: "cases", ...progress }),
    }))
      onRow(row);
  if (plan.checks.length === 0) return undefined;
  let notMade: OctavoError | undefined;
  const cases = await sampledCases(plan);
  for (const [index, { name, settings }] of plan.checks.entries()) {
    signal.throwIfAborted();
    const place = { phase: "check", check: name, index, count: plan.checks.length } as const;
    onProgress?.({ ...place, done: 0, total: undefined });
    const bed: TestBed = {
      candidate: plan.candidate.target,
      baseline: plan.baseline?.target,
      replicas: plan.replicas.map(({ target }) => target),
      startReplica: plan.startReplica,
      cases,
      evaluators: plan.evaluators,
      seed: plan.seed,
      signal,
      ...(observations === undefined ? {} : { journal: observations }),
      onProgress: ({ done, total }) => onProgress?.({ ...place, done, total }),
    };
    const result = await makeCheck(name, bed, settings).catch((thrown: unknown) => {
      const error = OctavoError.from(thrown);
      const isOfThisCheck = !signal.aborted && outcomeOf(error.code) !== undefined;
      if (!isOfThisCheck || plan.checks.length === 1) throw thrown;
      notMade ??= error;
      return unmadeCheck(name, error.message);
    });
    checks.push(result);
    onProgress?.({ ...place, done: 1, total: 1, result });
  }
  return notMade;
}

async function makeCheck(name: CheckName, bed: TestBed, settings: unknown): Promise<CheckResult> {
  const { result } = await checkNamed(name).run(bed, settings);
  return result;
}

/** What a report shows of a check that could not be made. */
function unmadeCheck(check: CheckName, message: string): CheckResult {
  return {
    check,
    verdict: "inconclusive",
    summary: `Could not be made: ${message}`,
    ruleOfThumb: { rule: "Nothing was observed to compute it from.", tripped: false, columns: [], rows: [] },
    hypotheses: [],
    sampleSize: { have: 0, needed: undefined, alpha: 0.05, power: 0.8, basis: "nothing was observed" },
    advice: [],
    movedCases: [],
    figures: [],
    notes: [],
  };
}

/** A sample of all datasets together, in their order. */
async function sampledCases({ datasets, maxCheckCases, seed }: EvaluationPlan): Promise<readonly EvalCase[]> {
  const all = {
    name: "datasets",
    size: undefined,
    async *cases() {
      for (const dataset of datasets) yield* dataset.cases();
    },
  };
  const cases: EvalCase[] = [];
  for await (const evalCase of limitDataset(all, maxCheckCases, seed).cases()) cases.push(evalCase);
  return cases;
}

/** Why a run ended before its end: a signal that was given has no code of its own. */
function endOf(thrown: unknown, { signal, deadline }: EvaluationRunOptions): OctavoError {
  if (signal.aborted)
    return new OctavoError("request_cancelled", "the run was interrupted", { cause: thrown });
  if (deadline?.aborted === true)
    return new OctavoError("deadline_exceeded", "The time of the run was over before it was done.", {
      cause: thrown,
    });
  return OctavoError.from(thrown);
}

function reportTargets({ baseline, candidate, replicas }: EvaluationPlan): readonly ReportTarget[] {
  const of = (planned: PlannedTarget, role: ReportTarget["role"]): ReportTarget => ({
    name: planned.target.name,
    role,
    url: planned.url,
    model: planned.model,
  });
  return [
    ...(baseline === undefined ? [] : [of(baseline, "baseline")]),
    of(candidate, "candidate"),
    ...replicas.map((replica) => of(replica, "replica")),
  ];
}
