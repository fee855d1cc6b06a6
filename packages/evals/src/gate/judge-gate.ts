import type { CheckResult, Verdict } from "../checks/check.js";
import { formatInterval, formatValue } from "@octavo/report";
import type { GateAssertion, ConfiguredCheck, GateConfig } from "./config.js";
import { type Estimated, estimate } from "./estimate.js";
import { exitCodes } from "./exit-codes.js";
import { type MeasuredColumn, type HealthExpectation, unitOfMeasure } from "./expectation.js";
import type { GateItem, GateOutcome, GateResult } from "./gate-result.js";
import type { Measurements } from "./measurements.js";

/** What a gate's expectations are held against. */
export interface GateEvidence {
  readonly measurements: Measurements;
  readonly checks: readonly CheckResult[];
  /** Evaluators that ask a judge. */
  readonly judged: readonly string[];
  /** Targets whose answers were measured. */
  readonly targets: readonly string[];
}

/** Share of answers that may fail to connect before a target counts as unreachable. */
const unreachableShare = 0.5;
/** Share of a figure's values that may be missing, since the missing ones may be the bad ones. */
const missingShare = 0.05;
const unreachableCodes: readonly string[] = ["connection", "target_unreachable"];

/**
 * Compares measurements with expectations; pure. An expectation passes when its whole interval lies on the right
 * side of the bound. It fails when an interval adjusted for the number of expectations (Bonferroni) lies on the wrong side:
 * passing needs them all, failing one, so only failing grows likelier by chance with their number.
 */
export function judgeGate(config: GateConfig, evidence: GateEvidence): GateResult {
  const { name, confidence, seed } = config.file;
  const numAsserted = config.assertions.filter(({ expectation }) => !expectation.byEstimate).length;
  const broken = brokenJudges(config, evidence);
  const items = [
    ...config.assertions.map((assertion) =>
      judgeAssertion(assertion, estimate(assertion.expectation, evidence.measurements, { seed }), {
        confidence: assertion.expectation.confidence ?? confidence,
        numAsserted,
        doubt: broken.has(evaluatorOf(assertion.expectation) ?? "")
          ? "its judge is broken, so no verdict is drawn from it"
          : whatIsMissing(assertion.expectation, evidence),
      }),
    ),
    ...config.checks.map((check) => checkItem(check, evidence.checks)),
  ];
  const [outcome, summary] = conclude(config, evidence, items, broken);
  return { name, outcome, exitCode: exitCodes[outcome], summary, items };
}

/** Result of a gate that did not judge: it was not concerned, or was cut off. */
export function unjudged(config: GateConfig, outcome: GateOutcome, summary: string): GateResult {
  return { name: config.file.name, outcome, exitCode: exitCodes[outcome], summary, items: [] };
}

function judgeAssertion(
  { dimension, expectation, onFail }: GateAssertion,
  estimated: Estimated,
  {
    confidence,
    numAsserted,
    doubt,
  }: {
    readonly confidence: number;
    readonly numAsserted: number;
    /** Why the figure decides nothing, whatever it is. */
    readonly doubt: string | undefined;
  },
): GateItem {
  const { comparator, bound, byEstimate } = expectation;
  const { estimate: value, numObservations, method, problem } = estimated;
  const unit = unitOfMeasure(expectation);
  const interval = byEstimate || value === undefined ? undefined : estimated.interval(confidence);
  const wider =
    interval === undefined ? undefined : estimated.interval(1 - (1 - confidence) / Math.max(1, numAsserted));
  const verdict = ((): Verdict => {
    if (value === undefined || doubt !== undefined) return "inconclusive";
    if (byEstimate) return (comparator === "<=" ? value <= bound : value >= bound) ? "pass" : "fail";
    if (interval === undefined || wider === undefined) return "inconclusive";
    if (comparator === "<=")
      return interval[1] <= bound ? "pass" : wider[0] > bound ? "fail" : "inconclusive";
    return interval[0] >= bound ? "pass" : wider[1] < bound ? "fail" : "inconclusive";
  })();
  const reason = doubt ?? problem;
  const why = verdict === "inconclusive" && reason !== undefined ? `; ${reason}` : "";
  const range = interval === undefined ? "" : ` (${formatInterval(interval, unit)})`;
  return {
    dimension,
    expectation: expectation.text,
    onFail,
    verdict,
    estimate: value,
    interval,
    bound,
    unit,
    numObservations,
    method: byEstimate ? "estimate alone" : method,
    summary: `${formatValue(value, unit)}${range} of ${numObservations}${why}`,
  };
}

function checkItem({ name, onFail }: ConfiguredCheck, results: readonly CheckResult[]): GateItem {
  const result = results.find(({ check }) => check === name);
  return {
    dimension: "check",
    expectation: name,
    onFail,
    verdict: result?.verdict ?? "inconclusive",
    estimate: undefined,
    interval: undefined,
    bound: undefined,
    unit: "share",
    numObservations: result?.sampleSize.have ?? 0,
    method: "",
    summary: result?.summary ?? "was not run",
  };
}

/** A proven failure stands, whatever went wrong elsewhere; a broken judge takes precedence over inconclusive. */
function conclude(
  config: GateConfig,
  evidence: GateEvidence,
  items: readonly GateItem[],
  broken: ReadonlyMap<string, string>,
): readonly [GateOutcome, string] {
  const deciding = items.filter(({ onFail }) => onFail === "error");
  const named = (verdict: Verdict): readonly string[] =>
    deciding.filter((item) => item.verdict === verdict).map(({ expectation }) => expectation);
  const unreachable = evidence.targets.find((target) => isUnreachable(evidence.measurements, target));
  if (unreachable !== undefined)
    return ["target_unreachable", `The target ${unreachable} did not answer most of the cases.`];
  const failed = named("fail");
  if (failed.length > 0)
    return ["fail", `${failed.length} of ${deciding.length} expectations failed: ${failed.join("; ")}.`];
  const silent = [...broken.values()][0] ?? brokenCheck(config, evidence);
  if (silent !== undefined) return ["judge_broken", silent];
  const empty = emptyEvaluator(config, evidence);
  if (empty !== undefined) return ["data", empty];
  const open = named("inconclusive");
  if (open.length > 0)
    return [
      "inconclusive",
      `${open.length} of ${deciding.length} expectations are not decided by this many cases: ${open.join("; ")}.`,
    ];
  const warned = items.filter(({ onFail, verdict }) => onFail === "warn" && verdict !== "pass").length;
  return [
    "pass",
    `All ${deciding.length} expectations hold${warned > 0 ? `, with ${warned} to look at` : ""}.`,
  ];
}

function isUnreachable(measurements: Measurements, target: string): boolean {
  const asked = measurements.failures(target).filter((value) => !Number.isNaN(value)).length;
  if (asked === 0) return false;
  const lost = unreachableCodes
    .map((code) => measurements.failures(target, code).filter((value) => value === 1).length)
    .reduce((sum, count) => sum + count, 0);
  return lost / asked > unreachableShare;
}

/** What is wrong with the judge, by evaluator. */
function brokenJudges(
  config: GateConfig,
  { measurements, judged, targets }: GateEvidence,
): ReadonlyMap<string, string> {
  const broken = new Map<string, string>();
  const most = config.file.judge?.max_failure_rate ?? 0;
  for (const evaluator of judged)
    for (const target of targets) {
      const { scored, failed } = measurements.scoreCounts(target, evaluator);
      if (failed > 0 && failed / (scored + failed) > most)
        broken.set(
          evaluator,
          `The judge could not tell ${failed} of ${scored + failed} answers of ${target} for ${evaluator}, more than ${formatValue(most, "share")}: no verdict is drawn from it.`,
        );
    }
  return broken;
}

/** A check that decides, and draws no verdict since an evaluator could not score what it asked. */
function brokenCheck({ checks }: GateConfig, evidence: GateEvidence): string | undefined {
  const deciding = new Set<string>(checks.flatMap(({ name, onFail }) => (onFail === "error" ? [name] : [])));
  const found = evidence.checks.find(
    ({ check, brokenEvaluators = [] }) => deciding.has(check) && brokenEvaluators.length > 0,
  );
  return found && `${found.check}: ${found.summary}`;
}

function evaluatorOf({ measure }: HealthExpectation): string | undefined {
  if (measure.kind === "pass_rate") return measure.evaluator;
  return "of" in measure && measure.of.kind === "score" ? measure.of.evaluator : undefined;
}

/**
 * Missing answers count as not passed in a pass rate, and have no other figure. What evaluators failed to score is
 * missing from both; for those that ask a judge, `max_failure_rate` says how much may be.
 */
function whatIsMissing(
  expectation: HealthExpectation,
  { measurements, judged }: GateEvidence,
): string | undefined {
  const { measure, compare, target = "candidate" } = expectation;
  if (measure.kind === "error_rate" || measure.kind === "throughput") return undefined;
  const evaluator = evaluatorOf(expectation);
  const column: MeasuredColumn =
    measure.kind === "pass_rate" ? { kind: "score", evaluator: measure.evaluator } : measure.of;
  for (const side of compare === "none" ? [target] : ["candidate", "baseline"]) {
    const { asked, unanswered, unscored } = measurements.completeness(side, column);
    const missing =
      (measure.kind === "pass_rate" ? 0 : unanswered) +
      (evaluator !== undefined && judged.includes(evaluator) ? 0 : unscored);
    if (missing > missingShare * asked)
      return `${missing} of ${asked} answers of ${side} have no such figure, more than ${formatValue(missingShare, "share")}`;
  }
  return undefined;
}

/** An expectation about scores that no case could have, as when the dataset has no gold. */
function emptyEvaluator(config: GateConfig, { measurements, targets }: GateEvidence): string | undefined {
  for (const { expectation, onFail } of config.assertions) {
    const evaluator = evaluatorOf(expectation);
    if (evaluator === undefined || onFail === "warn") continue;
    for (const target of targets) {
      const { skipped } = measurements.scoreCounts(target, evaluator);
      const { asked } = measurements.completeness(target, { kind: "score", evaluator });
      if (asked === 0 && skipped > 0)
        return `No case has what ${evaluator} reads, so \`${expectation.text}\` is about nothing: all ${skipped} were skipped.`;
    }
  }
  return undefined;
}
