import {
  calibrateEvaluator,
  type Calibrated,
  type CascadeReport,
  type EvaluatorCalibration,
  evaluatorTable,
  exitCodes,
  openAiJudge,
  openDataset,
  type PositionBias,
  reportCalibration,
} from "@octavo/evals";
import { option } from "@octavo/protocol/options";
import { defineCommand } from "../command.js";
import { datasetOptions, datasetRows, evaluatorOf, judgeRows, keyOf } from "../eval/eval-rows.js";
import { interruptible } from "../interruptible.js";
import { printable } from "@octavo/report/text-table";

/** `octavo eval calibrate`: how far a judge can be trusted, by cases that people labelled. */
export default defineCommand({
  arguments: { "<file>": "cases with answers, and labels where there are any" },
  options: {
    ...datasetRows,
    ...judgeRows,
    judge: { ...judgeRows.judge, isRequired: true },
    judgeModel: { ...judgeRows.judgeModel, isRequired: true },
    evaluator: option.texts(
      "--evaluator <name...>",
      "judged evaluators, as octavo eval list names them, or as JSON",
      { isRequired: true },
    ),
    outputField: option.text("--output-field <name>", "field with the answer that was labelled", {
      default: "output",
    }),
    labelField: option.text(
      "--label-field <name>",
      "field with the label: pass or fail, or one for each evaluator",
      { default: "label" },
    ),
    baselineField: option.text("--baseline-field <name>", "field with the answer that it is compared with", {
      default: "baseline",
    }),
    minimum: option.integer("--minimum <n>", "labels of each kind that are needed for a result", {
      min: 2,
      default: 10,
    }),
    concurrency: option.integer("--concurrency <n>", "judge requests in flight", {
      min: 1,
      max: 1024,
      default: 8,
    }),
    json: option.toggle("--json", "print JSON"),
  },
  async run(flags, file: string) {
    const { outputField, labelField, baselineField, minimum: minimumPerLabel, concurrency } = flags;
    const apiKey = keyOf("judge-key-env", flags.judgeKeyEnv);
    const judge = openAiJudge({
      baseUrl: flags.judge,
      model: flags.judgeModel,
      concurrency,
      ...(apiKey === undefined ? {} : { apiKey }),
    });
    const evaluators = evaluatorTable.create(flags.evaluator.map(evaluatorOf), { judge });
    const calibrations = await interruptible(async (signal) => {
      const results: EvaluatorCalibration[] = [];
      const settings = { outputField, labelField, baselineField, signal, minimumPerLabel, concurrency };
      for (const evaluator of evaluators) {
        const dataset = await openDataset(file, datasetOptions(flags));
        results.push(await calibrateEvaluator(evaluator, dataset.cases(), settings));
      }
      return results;
    });
    process.stdout.write(
      flags.json
        ? `${JSON.stringify(calibrations.map(jsonOf), null, 2)}\n`
        : calibrations.map(textOf).join("\n"),
    );
    process.exitCode = exitCodeOf(calibrations);
  },
});

function jsonOf(calibration: EvaluatorCalibration): unknown {
  const { report, evaluator, judge, places, cascade } = calibration;
  const decided = {
    ...(places.numPairs === 0 ? {} : { places }),
    ...(cascade.numScored === 0 ? {} : { cascade }),
  };
  if (report.status === "refused") return { evaluator, judge, refused: report.reason, ...decided };
  const { warnings, numJudgeFailures, uncorrected, predictionPowered } = report;
  const figures = { numJudgeFailures, uncorrected, predictionPowered, warnings };
  return { ...reportCalibration(calibration), ...figures, ...decided };
}

function textOf({ evaluator, judge = "nobody", report, places, cascade }: EvaluatorCalibration): string {
  const head = `${evaluator}, judged by ${judge}`;
  const lines = report.status === "refused" ? [`refused: ${report.reason}`] : linesOf(report);
  const decided = [...placeLines(places), ...cascadeLines(cascade)];
  return printableLines([head, ...[...lines, ...decided].map((line) => `  ${line}`)]);
}

function placeLines({ numPairs, disagreement, firstPreferred }: PositionBias): readonly string[] {
  if (numPairs === 0) return [];
  return [
    `orders disagree    ${estimate(disagreement?.estimate, disagreement?.interval)} of ${numPairs} pairs; of these for the first place ${estimate(firstPreferred?.estimate, firstPreferred?.interval)}`,
  ];
}

function cascadeLines({
  numScored,
  stages,
  numAudited,
  agreement,
  problems,
}: CascadeReport): readonly string[] {
  if (numScored === 0) return [];
  const decided = stages.map(({ name, numDecided }) => `${name} ${numDecided}`).join(", ");
  return [
    `decided by         ${decided}`,
    `agreement          ${estimate(agreement?.estimate, agreement?.interval)} of ${numAudited} audited`,
    ...problems.map((problem) => `warning: a stage failed: ${problem}`),
  ];
}

function linesOf(report: Calibrated): readonly string[] {
  const { accuracy, kappa, balancedAccuracy, roc, corrected, uncorrected, predictionPowered } = report;
  const { sensitivity, specificity } = accuracy;
  return [
    `labels             ${report.numLabels}, ${sensitivity.trials} of them pass; the judge gave no verdict on ${report.numJudgeFailures}`,
    `kappa              ${estimate(kappa.kappa, kappa.interval)}`,
    `balanced accuracy  ${estimate(balancedAccuracy.estimate, balancedAccuracy.interval)}: passes ${sensitivity.successes} of ${sensitivity.trials} that pass, fails ${specificity.successes} of ${specificity.trials} that fail`,
    ...(roc === undefined
      ? []
      : [
          `area under ROC     ${estimate(roc.auc, roc.interval)}: how well its values tell the labels apart at any threshold; average precision ${roc.averagePrecision.toFixed(3)}`,
        ]),
    ...(uncorrected === undefined || corrected === undefined || predictionPowered === undefined
      ? []
      : [
          `pass rate          ${(uncorrected.passed / uncorrected.total).toFixed(3)} of ${uncorrected.total} unlabelled, as judged`,
          `  corrected        ${estimate(corrected.estimate, corrected.interval)}`,
          `  with the labels  ${estimate(predictionPowered.estimate, predictionPowered.interval)} (prediction-powered)`,
        ]),
    ...report.warnings.map((warning) => `warning: ${warning}`),
  ];
}

function estimate(value: number | undefined, interval: readonly [number, number] | undefined): string {
  if (value === undefined) return "unknown";
  return interval === undefined
    ? value.toFixed(3)
    : `${value.toFixed(3)} [${interval.map((end) => end.toFixed(3)).join(", ")}]`;
}

/** A judge that failed on more than 5 % of the cases is broken; too few labels decide nothing. */
function exitCodeOf(calibrations: readonly EvaluatorCalibration[]): number {
  const isBroken = calibrations.some(({ numFailed, numCases }) => numFailed > 0.05 * numCases);
  if (isBroken) return exitCodes.judge_broken;
  return calibrations.some(({ report }) => report.status === "refused")
    ? exitCodes.inconclusive
    : exitCodes.pass;
}

function printableLines(lines: readonly string[]): string {
  return lines.map((line) => `${printable(line)}\n`).join("");
}
