import { asRecord, OctavoError } from "@octavo/protocol";
import { correctedRate, wilsonInterval } from "@octavo/statistics";
import type { Answer } from "../answers/answer.js";
import type { EvalCase } from "../cases/eval-case.js";
import type { Evaluator, Sample, Score } from "../evaluators/evaluator.js";
import type { ReportCalibration } from "../report/report.js";
import { LocalRunner } from "../runners/local-runner.js";
import { functionTarget } from "../targets/function-target.js";
import {
  calibrate,
  type CalibrationOptions,
  type CalibrationReport,
  type LabelledScore,
  passProbability,
} from "./calibration.js";
import { cascadeReport, type CascadeReport } from "./cascade.js";
import { positionBias, type PositionBias } from "./pairwise.js";

/** Where the labels of `calibrateEvaluator` stand, and what is enough of them. */
export interface CalibrateEvaluatorOptions extends CalibrationOptions {
  readonly signal: AbortSignal;
  /** Fields of the cases' metadata: the answer that was labelled, and what people said of it. Default `output`, `label`. */
  readonly outputField?: string;
  readonly labelField?: string;
  /** Another answer that the labelled one is compared with, for evaluators that compare. Default `baseline`. */
  readonly baselineField?: string;
  readonly concurrency?: number;
}

/** How far an evaluator agrees with people on labelled cases. */
export interface EvaluatorCalibration {
  readonly evaluator: string;
  readonly judge: string | undefined;
  readonly numCases: number;
  /** Cases on which the judge failed, labelled or not. */
  readonly numFailed: number;
  readonly report: CalibrationReport;
  /** The judge's probability of a pass beside how often people passed, in tenths; empty where it gives none. */
  readonly bins: ReportCalibration["bins"];
  /** How much the order of two answers decided, of an evaluator that compares. */
  readonly places: PositionBias;
  /** What each stage decided, of a cascade. */
  readonly cascade: CascadeReport;
}

/**
 * Holds an evaluator against people's labels. Every case carries an answer in its metadata; those with a label calibrate,
 * those without are what the corrected pass rate is of. A label is `pass` or `fail` (also yes and no, true and false, 1 and
 * 0), or an object with one for each evaluator.
 *
 * @throws OctavoError `dataset_invalid` that names the case without an answer, or with a label that is none
 */
export async function calibrateEvaluator(
  evaluator: Evaluator,
  cases: AsyncIterable<EvalCase> | Iterable<EvalCase>,
  options: CalibrateEvaluatorOptions,
): Promise<EvaluatorCalibration> {
  const { signal, concurrency = 8, labelField = "label", ...rest } = options;
  const { outputField = "output", baselineField = "baseline", ...settings } = rest;
  const labels = new Map<string, boolean | undefined>();
  const labelled: LabelledScore[] = [];
  const unlabelled: Score[] = [];
  const samples = async function* (): AsyncGenerator<Sample> {
    for await (const evalCase of cases) {
      labels.set(evalCase.id, carriedLabel(evalCase, labelField, evaluator.name));
      const answer = await carriedAnswer(evalCase, outputField, signal);
      const hasBaseline = evalCase.metadata[baselineField] !== undefined;
      yield {
        case: evalCase,
        answer,
        ...(hasBaseline ? { baseline: await carriedAnswer(evalCase, baselineField, signal) } : {}),
      };
    }
  };
  const runner = new LocalRunner({ concurrency });
  for await (const { caseId, score } of runner.run(samples(), [evaluator], { signal })) {
    const human = labels.get(caseId);
    labels.delete(caseId);
    if (human === undefined) unlabelled.push(score);
    else labelled.push({ human, judged: score });
  }
  const scores = [...labelled.map(({ judged }) => judged), ...unlabelled];
  return {
    evaluator: evaluator.name,
    judge: evaluator.judge,
    numCases: scores.length,
    numFailed: scores.filter(({ status }) => status === "failed").length,
    report: calibrate(labelled, unlabelled, settings),
    bins: reliabilityBins(labelled),
    places: positionBias(scores),
    cascade: cascadeReport(scores),
  };
}

/**
 * As reports show it; undefined where the labels were refused. The corrected pass rate is of `passes` (1, 0, NaN where there
 * is no verdict) where they are given, as of the answers of a run, else of the cases without a label.
 */
export function reportCalibration(
  calibration: EvaluatorCalibration,
  passes: readonly number[] = [],
): ReportCalibration | undefined {
  const { report, evaluator, judge = "none", bins } = calibration;
  if (report.status === "refused") return undefined;
  const { kappa, balancedAccuracy } = report;
  const { confidence } = kappa;
  const verdicts = passes.filter((value) => !Number.isNaN(value));
  const judged = { successes: verdicts.filter((value) => value === 1).length, trials: verdicts.length };
  const corrected =
    judged.trials === 0 ? report.corrected : correctedRate(judged, report.accuracy, confidence);
  return {
    judge,
    evaluator,
    numLabels: report.numLabels,
    kappa:
      kappa.kappa === undefined ? undefined : { estimate: kappa.kappa, interval: kappa.interval, confidence },
    balancedAccuracy,
    correctedPassRate:
      corrected?.estimate === undefined
        ? undefined
        : { estimate: corrected.estimate, interval: corrected.interval, confidence },
    bins,
  };
}

function reliabilityBins(labelled: readonly LabelledScore[]): ReportCalibration["bins"] {
  const bins = new Map<number, { sum: number; passed: number; count: number }>();
  for (const { human, judged } of labelled) {
    const predicted = passProbability(judged);
    if (predicted === undefined) continue;
    const tenth = Math.min(9, Math.floor(predicted * 10));
    const bin = bins.get(tenth) ?? { sum: 0, passed: 0, count: 0 };
    bins.set(tenth, bin);
    bin.sum += predicted;
    bin.count += 1;
    if (human) bin.passed += 1;
  }
  return [...bins]
    .toSorted(([one], [other]) => one - other)
    .map(([, { sum, passed, count }]) => ({
      predicted: sum / count,
      observed: passed / count,
      interval: wilsonInterval(passed, count),
      count,
    }));
}

/** The answer that a case carries in a field of its metadata. */
export async function carriedAnswer(evalCase: EvalCase, field: string, signal: AbortSignal): Promise<Answer> {
  const output = evalCase.metadata[field];
  if (typeof output !== "string")
    throw invalid(evalCase, field, "expected the answer that is judged, as text");
  return functionTarget("labelled", () => output).answer(evalCase, { signal });
}

const words: Readonly<Record<string, boolean>> = {
  pass: true,
  yes: true,
  true: true,
  "1": true,
  fail: false,
  no: false,
  false: false,
  "0": false,
};

/** A person's label of a case, of which there may be one for each evaluator. */
export function carriedLabel(evalCase: EvalCase, field: string, evaluator: string): boolean | undefined {
  const given = evalCase.metadata[field];
  const own = typeof given === "object" && given !== null ? asRecord(given)[evaluator] : given;
  if (own === undefined || own === null || own === "") return undefined;
  const word = typeof own === "boolean" || typeof own === "number" ? String(own) : own;
  const label = typeof word === "string" ? words[word.trim().toLowerCase()] : undefined;
  if (label === undefined) throw invalid(evalCase, field, "expected pass or fail");
  return label;
}

function invalid({ id }: EvalCase, field: string, what: string): OctavoError {
  return new OctavoError("dataset_invalid", `case ${JSON.stringify(id.slice(0, 80))}: ${field}: ${what}`, {
    param: field,
  });
}
