import {
  formatInterval,
  formatValue,
  intervalChart,
  reliabilityCurve,
  significant,
  table,
} from "@octavo/report";
import type { Estimate } from "@octavo/statistics";
import type { EvalReport, EvaluatorSummary, ReportCalibration } from "../report.js";

/** Pass rates by evaluator and target. */
export function evaluatorSection(evaluators: readonly EvaluatorSummary[]): string {
  if (evaluators.length === 0) return "";
  const targets = new Set(evaluators.map(({ target }) => target));
  const rows = evaluators.flatMap(({ evaluator, target, passRate }) =>
    passRate?.interval === undefined
      ? []
      : [
          {
            label: targets.size > 1 ? `${evaluator} \u00b7 ${target}` : evaluator,
            estimate: passRate.estimate,
            interval: passRate.interval,
          },
        ],
  );
  return (
    (rows.length === 0 ? "" : intervalChart({ title: "Pass rates", unit: "share", rows })) +
    table(
      "Scores by evaluator; ties are counted where the judge saw no difference",
      ["evaluator", "target", "pass rate", "interval", "mean score", "scored", "skipped", "could not tell"],
      evaluators.map((row) => [
        row.evaluator,
        row.target,
        formatValue(row.passRate?.estimate, "share"),
        formatInterval(row.passRate?.interval, "share"),
        formatValue(row.mean?.estimate, "score"),
        significant(row.scored, 0),
        significant(row.skipped, 0),
        significant(row.failed, 0),
      ]),
      [2, 3, 4, 5, 6, 7],
    )
  );
}

/** How far each judge agrees with people, with itself when answers change places, and with the cheaper stages before it. */
export function judgeSection({
  calibrations,
  comparisons,
  cascades,
}: Pick<EvalReport, "calibrations" | "comparisons" | "cascades">): string {
  return calibrationTables(calibrations) + comparisonTable(comparisons) + cascadeTable(cascades);
}

function withInterval(estimate: Estimate | undefined, unit: string): string {
  return estimate === undefined
    ? "\u2013"
    : `${formatValue(estimate.estimate, unit)} (${formatInterval(estimate.interval, unit)})`;
}

function comparisonTable(comparisons: EvalReport["comparisons"] = []): string {
  if (comparisons.length === 0) return "";
  return table(
    "Pairs in both orders: where the orders disagree, the place decided, and that is a tie",
    ["evaluator", "judge", "target", "pairs", "orders disagree", "of these for the first place"],
    comparisons.map((row) => [
      row.evaluator,
      row.judge ?? "\u2013",
      row.target,
      significant(row.numPairs, 0),
      withInterval(row.disagreement, "share"),
      withInterval(row.firstPreferred, "share"),
    ]),
    [3, 4, 5],
  );
}

function cascadeTable(cascades: EvalReport["cascades"] = []): string {
  if (cascades.length === 0) return "";
  return table(
    "Cascades: what each stage decided, and how often the last one agrees with those before it",
    ["evaluator", "target", "verdicts", "decided by", "audited", "agreement"],
    cascades.map((row) => [
      row.evaluator,
      row.target,
      significant(row.numScored, 0),
      row.stages.map(({ name, numDecided }) => `${name} ${significant(numDecided, 0)}`).join(", "),
      significant(row.numAudited, 0),
      withInterval(row.agreement, "share"),
    ]),
    [2, 4, 5],
  );
}

function calibrationTables(calibrations: readonly ReportCalibration[]): string {
  if (calibrations.length === 0) return "";
  const curves = calibrations
    .filter(({ bins }) => bins.length > 0)
    .map(({ evaluator, judge, bins }) =>
      reliabilityCurve({ title: `${evaluator}, judged by ${judge}`, xLabel: "the judge's P(pass)", bins }),
    );
  return (
    `<div class="curves">${curves.join("")}</div>` +
    table(
      "Judges beside people",
      ["evaluator", "judge", "labels", "Cohen's \u03ba", "balanced accuracy", "corrected pass rate"],
      calibrations.map((row) => [
        row.evaluator,
        row.judge,
        significant(row.numLabels, 0),
        withInterval(row.kappa, "score"),
        withInterval(row.balancedAccuracy, "share"),
        withInterval(row.correctedPassRate, "share"),
      ]),
      [2, 3, 4, 5],
    )
  );
}
