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
import { OctavoError } from "@octavo/protocol";
import { Command } from "commander";
import { datasetFlags, datasetOptions, type DatasetFlags } from "../eval/dataset-flags.js";
import { evalAction } from "../eval/eval-action.js";
import { interruptible } from "../interruptible.js";
import { parseCount } from "../options/parse.js";
import { printable } from "../output/text-table.js";

interface CalibrateFlags extends DatasetFlags {
  readonly judge: string;
  readonly judgeModel: string;
  readonly judgeKeyEnv?: string;
  readonly evaluator: readonly string[];
  readonly outputField: string;
  readonly labelField: string;
  readonly baselineField: string;
  readonly minimum: number;
  readonly concurrency: number;
  readonly json?: boolean;
}

/** `octavo eval calibrate`: how far a judge can be believed, by cases that people labelled. */
export function evalCalibrateCommand(): Command {
  const command = new Command("calibrate")
    .description("hold a judge against people's labels")
    .argument("<file>", "cases with answers, and labels where there are any");
  return datasetFlags(command)
    .requiredOption("--judge <url>", "server of the model that judges")
    .requiredOption("--judge-model <name>", "its model")
    .option("--judge-key-env <name>", "environment variable with its key")
    .requiredOption("--evaluator <name...>", "judged evaluators, as octavo eval list names them, or as JSON")
    .option("--output-field <name>", "where a case has the answer that was labelled", "output")
    .option(
      "--label-field <name>",
      "where it has the label: pass or fail, or one for each evaluator",
      "label",
    )
    .option("--baseline-field <name>", "where it has the answer that it is compared with", "baseline")
    .option("--minimum <n>", "labels of each kind below which nothing is said", parseCount(2), 10)
    .option("--concurrency <n>", "questions in flight", parseCount(1, 1024), 8)
    .option("--json", "print JSON")
    .action(evalAction(calibrate));
}

async function calibrate(file: string, flags: CalibrateFlags): Promise<void> {
  const key = flags.judgeKeyEnv === undefined ? undefined : process.env[flags.judgeKeyEnv];
  if (flags.judgeKeyEnv !== undefined && key === undefined)
    throw new OctavoError("invalid_option", `--judge-key-env: ${flags.judgeKeyEnv} is not set`, {
      param: "judgeKeyEnv",
    });
  const judge = openAiJudge({
    baseUrl: flags.judge,
    model: flags.judgeModel,
    concurrency: flags.concurrency,
    ...(key === undefined ? {} : { apiKey: key }),
  });
  const evaluators = evaluatorTable.create(flags.evaluator.map(specOf), { judge });
  const calibrations = await interruptible(
    async (signal) => {
      const results: EvaluatorCalibration[] = [];
      for (const evaluator of evaluators) {
        const { outputField, labelField, baselineField, minimum: minimumPerLabel, concurrency } = flags;
        const dataset = await openDataset(file, datasetOptions(flags));
        const fields = { outputField, labelField, baselineField };
        const settings = { ...fields, signal, minimumPerLabel, concurrency };
        results.push(await calibrateEvaluator(evaluator, dataset.cases(), settings));
      }
      return results;
    },
    () => undefined,
  );
  process.stdout.write(
    flags.json === true
      ? `${JSON.stringify(calibrations.map(jsonOf), null, 2)}\n`
      : calibrations.map(textOf).join("\n"),
  );
  process.exitCode = exitCodeOf(calibrations);
}

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

function cascadeLines({ numScored, stages, numAudited, agreement }: CascadeReport): readonly string[] {
  if (numScored === 0) return [];
  const decided = stages.map(({ name, numDecided }) => `${name} ${numDecided}`).join(", ");
  return [
    `decided by         ${decided}`,
    `agreement          ${estimate(agreement?.estimate, agreement?.interval)} of ${numAudited} audited`,
  ];
}

function linesOf(report: Calibrated): readonly string[] {
  const { accuracy, kappa, balancedAccuracy, corrected, uncorrected, predictionPowered } = report;
  const { sensitivity, specificity } = accuracy;
  return [
    `labels             ${report.numLabels}, ${sensitivity.trials} of them pass; the judge gave no verdict on ${report.numJudgeFailures}`,
    `kappa              ${estimate(kappa.kappa, kappa.interval)}`,
    `balanced accuracy  ${estimate(balancedAccuracy.estimate, balancedAccuracy.interval)}: passes ${sensitivity.successes} of ${sensitivity.trials} that pass, fails ${specificity.successes} of ${specificity.trials} that fail`,
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
  if (value === undefined) return "cannot be said";
  return interval === undefined
    ? value.toFixed(3)
    : `${value.toFixed(3)} [${interval.map((end) => end.toFixed(3)).join(", ")}]`;
}

/** A judge that mostly failed has calibrated nothing; labels that are too few decide nothing. */
function exitCodeOf(calibrations: readonly EvaluatorCalibration[]): number {
  const isBroken = calibrations.some(({ numFailed, numCases }) => numFailed > 0.05 * numCases);
  if (isBroken) return exitCodes.judge_broken;
  return calibrations.some(({ report }) => report.status === "refused")
    ? exitCodes.inconclusive
    : exitCodes.pass;
}

function specOf(text: string): unknown {
  if (!text.trimStart().startsWith("{")) return text;
  try {
    return JSON.parse(text) as unknown;
  } catch (cause) {
    throw new OctavoError("invalid_option", `--evaluator: not JSON: ${text.slice(0, 200)}`, {
      param: "evaluator",
      cause,
    });
  }
}

function printableLines(lines: readonly string[]): string {
  return lines.map((line) => `${printable(line)}\n`).join("");
}
