import type { Estimate } from "@octavo/statistics";
import { intervalChart } from "../charts/interval-chart.js";
import { reliabilityCurve } from "../charts/reliability-curve.js";
import { formatInterval, formatValue, significant } from "../format.js";
import { table } from "../html/elements.js";
import type { EvaluatorSummary, ReportCalibration } from "../report.js";

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
            margin: undefined,
            verdict: "inconclusive" as const,
          },
        ],
  );
  return (
    (rows.length === 0
      ? ""
      : `<div class="neutral">${intervalChart({ kind: "intervals", title: "Pass rates", unit: "share", rows })}</div>`) +
    table(
      "Scores by evaluator; the judged ones count what the judge could not tell apart",
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

/** How far each judge agrees with people, and whether its probabilities mean what they say. */
export function calibrationSection(calibrations: readonly ReportCalibration[]): string {
  if (calibrations.length === 0) return "";
  const withInterval = (estimate: Estimate | undefined, unit: string): string =>
    estimate === undefined
      ? "\u2013"
      : `${formatValue(estimate.estimate, unit)} (${formatInterval(estimate.interval, unit)})`;
  const curves = calibrations.filter(({ bins }) => bins.length > 0).map(reliabilityCurve);
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
