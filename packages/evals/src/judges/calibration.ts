import { asNumber, asRecord } from "@octavo/protocol";
import {
  agreementTable,
  balancedAccuracy,
  type BalancedAccuracy,
  cohenKappa,
  correctedRate,
  type CorrectedRate,
  type JudgeCalibration,
  type KappaResult,
  predictionPoweredMean,
  type PredictionPoweredMean,
  rocCurve,
  type RocResult,
} from "@octavo/statistics";
import type { Score } from "../evaluators/evaluator.js";

/** A case that a person labelled, with the judge's score of the same answer. */
export interface LabelledScore {
  readonly human: boolean;
  readonly judged: Score;
}

/** What is enough to say how far a judge agrees with people. */
export interface CalibrationOptions {
  readonly confidence?: number;
  /** Labels of each kind, pass and fail, below which nothing is said. Default 10. */
  readonly minimumPerLabel?: number;
}

/** How far a judge agrees with people's labels, or why that cannot be said. */
export type CalibrationReport = Calibrated | CalibrationRefused;

/** How far a judge agrees with people, each figure with its interval. */
export interface Calibrated {
  readonly status: "calibrated";
  readonly numLabels: number;
  /** Labelled cases for which the judge gave no verdict; they are in no figure. */
  readonly numJudgeFailures: number;
  /** Agreement beyond chance. */
  readonly kappa: KappaResult;
  readonly balancedAccuracy: BalancedAccuracy;
  /** How well the judge's values tell the labels apart, whatever the threshold. */
  readonly roc: RocResult | undefined;
  /** For `correctedRate` of other runs with the same judge. */
  readonly accuracy: JudgeCalibration;
  readonly uncorrected: { readonly passed: number; readonly total: number } | undefined;
  /** The pass rate that people would have given; undefined without scores of unlabelled cases. */
  readonly corrected: CorrectedRate | undefined;
  /** The same by prediction-powered inference: unbiased even where the judge errs otherwise on other cases. */
  readonly predictionPowered: PredictionPoweredMean | undefined;
  readonly warnings: readonly string[];
}

/** Too little to go by. */
export interface CalibrationRefused {
  readonly status: "refused";
  readonly reason: string;
  readonly numLabels: number;
  readonly numPassed: number;
}

/** Judges below it agree with people hardly more than chance (Landis and Koch 1977 call up to 0.4 fair). */
const weakKappa = 0.4;
const manyFailures = 0.05;

/**
 * How far a judge can be trusted, by cases that people labelled, and what its verdicts on other cases of the same kind
 * say once its errors are taken into account. Labelled cases are drawn at random from all, and labelled without sight of
 * the judge's verdicts. Failures of the judge are counted, never read as verdicts.
 */
export function calibrate(
  labelled: readonly LabelledScore[],
  unlabelled: readonly Score[] = [],
  { confidence = 0.95, minimumPerLabel = 10 }: CalibrationOptions = {},
): CalibrationReport {
  const pairs = labelled.flatMap(({ human, judged }) =>
    judged.status === "scored"
      ? [{ human, judge: judged.passed, value: passProbability(judged) ?? judged.value }]
      : [],
  );
  const right = pairs.filter(({ human }) => human);
  const wrong = pairs.filter(({ human }) => !human);
  const refusal = refusalOf(right.length, wrong.length, minimumPerLabel);
  if (refusal !== undefined)
    return { status: "refused", reason: refusal, numLabels: pairs.length, numPassed: right.length };
  const accuracy: JudgeCalibration = {
    sensitivity: { successes: right.filter(({ judge }) => judge).length, trials: right.length },
    specificity: { successes: wrong.filter(({ judge }) => !judge).length, trials: wrong.length },
  };
  const table = agreementTable(
    pairs.map(({ human }) => (human ? "pass" : "fail")),
    pairs.map(({ judge }) => (judge ? "pass" : "fail")),
  );
  const others = unlabelled.flatMap((score) => (score.status === "scored" ? [score.passed] : []));
  const passed = others.filter(Boolean).length;
  const kappa = cohenKappa(table.counts, { confidence });
  const corrected =
    others.length === 0
      ? undefined
      : correctedRate({ successes: passed, trials: others.length }, accuracy, confidence);
  const numJudgeFailures = labelled.filter(({ judged }) => judged.status === "failed").length;
  return {
    status: "calibrated",
    numLabels: pairs.length,
    numJudgeFailures,
    kappa,
    balancedAccuracy: balancedAccuracy(accuracy, confidence),
    roc: rocCurve(
      pairs.map(({ value }) => value),
      pairs.map(({ human }) => human),
      confidence,
    ),
    accuracy,
    uncorrected: others.length === 0 ? undefined : { passed, total: others.length },
    corrected,
    predictionPowered:
      others.length === 0
        ? undefined
        : predictionPoweredMean(
            {
              labels: pairs.map(({ human }) => Number(human)),
              judgedLabelled: pairs.map(({ judge }) => Number(judge)),
              judgedOnly: others.map(Number),
            },
            confidence,
          ),
    warnings: warningsOf(kappa, corrected, numJudgeFailures, labelled.length),
  };
}

/** The judge's probability of a pass, where it gives one. */
export function passProbability(judged: Score): number | undefined {
  if (judged.status !== "scored") return undefined;
  return asNumber(asRecord(judged.details?.["probabilities"])["pass"]);
}

function refusalOf(numRight: number, numWrong: number, minimum: number): string | undefined {
  const total = numRight + numWrong;
  if (total === 0) return "no case has both a person's label and a verdict of the judge";
  if (numRight === 0 || numWrong === 0)
    return `all ${total} labels say ${numRight === 0 ? "fail" : "pass"}: how the judge does on the others cannot be seen; label cases that ${numRight === 0 ? "pass" : "fail"}`;
  const few = Math.min(numRight, numWrong);
  if (few >= minimum) return undefined;
  return `${few} of ${total} labels say ${numRight < numWrong ? "pass" : "fail"}; at least ${minimum} of each are needed: label ${minimum - few} more such cases`;
}

function warningsOf(
  kappa: KappaResult,
  corrected: CorrectedRate | undefined,
  numFailures: number,
  numLabelled: number,
): readonly string[] {
  const warnings: string[] = [];
  if (kappa.kappa === undefined)
    warnings.push("the judge gave everything the same verdict: it tells nothing apart");
  else if (kappa.kappa < weakKappa)
    warnings.push(
      `kappa is ${kappa.kappa.toFixed(2)}: the judge agrees with people little more than chance would; change the rubric or the judge`,
    );
  if (corrected !== undefined && corrected.estimate === undefined)
    warnings.push("the judge is no better than chance: its pass rate cannot be corrected");
  if (numFailures > manyFailures * numLabelled)
    warnings.push(
      `the judge failed on ${numFailures} of ${numLabelled} labelled cases: if these are the hard ones, the figures flatter it`,
    );
  return warnings;
}
