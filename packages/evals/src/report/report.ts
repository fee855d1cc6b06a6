import type { ReliabilityCurve } from "@octavo/report";
import type { Estimate } from "@octavo/statistics";
import type { CheckResult, Verdict } from "../checks/check.js";
import type { GateResult } from "../gate/gate-result.js";
import type { CaseRow } from "../run/case-row.js";

/** All that a run found out: the JSON output, and what the HTML page and the Markdown comment are drawn from. */
export interface EvalReport {
  readonly format: "octavo.eval/1";
  readonly name: string;
  /** ISO 8601, UTC. */
  readonly startedAt: string;
  readonly durationMs: number;
  readonly seed: number;
  readonly targets: readonly ReportTarget[];
  readonly datasets: readonly ReportDataset[];
  readonly evaluators: readonly EvaluatorSummary[];
  readonly calibrations: readonly ReportCalibration[];
  /** Evaluators that compare two answers in both orders; absent if there are none, as `cascades` is. */
  readonly comparisons?: readonly ReportComparison[];
  readonly cascades?: readonly ReportCascade[];
  readonly checks: readonly CheckResult[];
  readonly gate: GateResult | undefined;
  /** The cases worth seeing, at most as many as the run was told to keep; `numCases` counts all. */
  readonly cases: readonly CaseRow[];
  readonly numCases: number;
  readonly warnings: readonly string[];
}

/** A dataset as a report names it. */
export interface ReportDataset {
  readonly name: string;
  /** Benchmarks only: which prompts the cases were asked with. */
  readonly prompts?: readonly string[];
}

/** A target as a report names it. */
export interface ReportTarget {
  readonly name: string;
  readonly role: "baseline" | "candidate" | "replica";
  readonly url: string;
  readonly model: string | undefined;
}

/** How one target's answers scored with one evaluator. */
export interface EvaluatorSummary {
  readonly evaluator: string;
  readonly target: string;
  readonly scored: number;
  readonly passed: number;
  /** The sample lacked what the evaluator reads. */
  readonly skipped: number;
  /** The evaluator could not tell, as when its judge is down. */
  readonly failed: number;
  readonly passRate: Estimate | undefined;
  readonly mean: Estimate | undefined;
}

/** How far a judge can be believed: its verdicts beside those of people. */
export interface ReportCalibration {
  readonly judge: string;
  readonly evaluator: string;
  readonly numLabels: number;
  readonly kappa: Estimate | undefined;
  readonly balancedAccuracy: Estimate | undefined;
  /** The share that people would pass, from the judge's share and its known errors. */
  readonly correctedPassRate: Estimate | undefined;
  /** Ascending in `predicted`; empty where the judge gives no probabilities. */
  readonly bins: ReliabilityCurve["bins"];
}

/** How much the order in which two answers were shown decided which was better. */
export interface ReportComparison {
  readonly evaluator: string;
  readonly judge: string | undefined;
  readonly target: string;
  readonly numPairs: number;
  /** Share of pairs whose two orders disagree: they count as ties. */
  readonly disagreement: Estimate | undefined;
  /** Share that preferred the first, among those that chose the same position twice: 0.5 without bias. */
  readonly firstPreferred: Estimate | undefined;
}

/** What a cascade's stages decided, and how often its last stage agrees with the ones before it. */
export interface ReportCascade {
  readonly evaluator: string;
  readonly target: string;
  readonly numScored: number;
  /** In their order. */
  readonly stages: readonly { readonly name: string; readonly numDecided: number }[];
  /** Verdicts settled before the last stage on which the last stage was asked as well. */
  readonly numAudited: number;
  readonly agreement: Estimate | undefined;
}

/** Verdict of the whole run: the gate's, else the worst of its checks. Undefined if nothing was to be decided. */
export function verdictOf({ gate, checks }: Pick<EvalReport, "gate" | "checks">): Verdict | undefined {
  if (gate !== undefined) {
    if (gate.outcome === "pass" || gate.outcome === "skipped") return "pass";
    return gate.outcome === "fail" ? "fail" : "inconclusive";
  }
  if (checks.some(({ verdict }) => verdict === "fail")) return "fail";
  if (checks.some(({ verdict }) => verdict === "inconclusive")) return "inconclusive";
  return checks.length > 0 ? "pass" : undefined;
}
