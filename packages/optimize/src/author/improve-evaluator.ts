import {
  calibrate,
  comparePaired,
  type JudgeModel,
  journalKey,
  LocalRunner,
  type Sample,
  type Score,
} from "@octavo/evals";
import { definedFields } from "@octavo/protocol";
import type { Interval } from "@octavo/statistics";
import { material, type TeacherDesk } from "../search/teacher.js";
import { type AuthoredEvaluator, type MeasuredAgreement, runnableEvaluator } from "./authored-evaluator.js";
import type { HumanLabel } from "./choose-labels.js";

/** An answer with what a person said of it, or what became of it later. */
export interface LabelledSample extends HumanLabel {
  readonly sample: Sample;
}

export interface ImproveOptions {
  readonly judge: JudgeModel;
  /** Writes new criteria; without one, threshold and examples alone change. */
  readonly desk?: TeacherDesk | undefined;
  readonly confidence?: number;
  readonly concurrency?: number;
  readonly signal: AbortSignal;
}

/** A new version of an evaluator, held against the old one on labels that it never saw. */
export interface Improvement {
  /** What is to be used from now on: the new version, or what there was. */
  readonly evaluator: AuthoredEvaluator;
  readonly verdict: "better" | "no_better" | "too_few_labels";
  readonly summary: string;
  /** Share of held-out labels that the new version shares, less that of the old one. */
  readonly gain: number | undefined;
  readonly interval: Interval | undefined;
  readonly numTuned: number;
  readonly numHeldOut: number;
  /** Labels of all kinds that it still gets wrong. */
  readonly wrong: readonly { readonly caseId: string; readonly passed: boolean; readonly value: number }[];
  /** Labelled cases without a verdict. */
  readonly numFailed: number;
}

/** Labels that change anything, in each part. */
const fewestLabels = 10;
const mostExamples = 4;
const longestExample = 2000;
const heldOutShare = 0.5;

/**
 * Retunes threshold, examples and criteria on one half of the labels, and takes the best of them for a new version only where it
 * agrees with more of the other half, by a paired interval. Which half a case is in is decided by its id, so that no version ever
 * learned from what later ones are judged by; and only labels that were drawn at random judge, since cases that are hard for the old
 * version would favour any other.
 */
export async function improveEvaluator(
  current: AuthoredEvaluator,
  labelled: readonly LabelledSample[],
  options: ImproveOptions,
): Promise<Improvement> {
  const { confidence = 0.95 } = options;
  const isHeldOut = ({ caseId, chosen }: HumanLabel): boolean =>
    chosen === "random" &&
    Number.parseInt(journalKey(`held out ${caseId}`).slice(0, 8), 16) < heldOutShare * 2 ** 32;
  const heldOut = labelled.filter(isHeldOut);
  const tuning = labelled.filter((one) => !isHeldOut(one));
  const before = await judgedValues(current, labelled, options);
  const numFailed = labelled.filter(({ caseId }) => before.get(caseId) === undefined).length;
  const finished = (
    evaluator: AuthoredEvaluator,
    values: Values,
    rest: Pick<Improvement, "verdict" | "summary" | "gain" | "interval">,
  ): Improvement => {
    const random = labelled.filter(({ chosen }) => chosen === "random");
    // a version is measured by what it did not learn from; the first one learned from nothing
    const measuring = evaluator.version === 1 ? random : heldOut;
    const anchors = Object.fromEntries(
      labelled.flatMap(({ caseId }) => {
        const value = values.get(caseId);
        return value === undefined ? [] : [[caseId, value]];
      }),
    );
    return {
      ...rest,
      evaluator: { ...evaluator, measured: measuredOf(evaluator, measuring, values, confidence), anchors },
      numTuned: tuning.length,
      numHeldOut: heldOut.length,
      wrong: labelled.flatMap(({ caseId, passed }) => {
        const value = values.get(caseId);
        return value === undefined || value >= evaluator.threshold === passed
          ? []
          : [{ caseId, passed, value }];
      }),
      numFailed,
    };
  };
  const nothing = { gain: undefined, interval: undefined };
  const lacks = lackOf(tuning, heldOut);
  if (lacks !== undefined)
    return finished(current, before, { verdict: "too_few_labels", summary: lacks, ...nothing });
  const candidates = [current, ...(await variants(current, tuning, before, options))];
  let best:
    | { readonly evaluator: AuthoredEvaluator; readonly values: Values; readonly accuracy: number }
    | undefined;
  for (const candidate of candidates) {
    const values = candidate === current ? before : await judgedValues(candidate, labelled, options);
    // examples are answered by themselves
    const shown = new Set(candidate.options.few_shot_examples.map(({ inputs }) => inputs));
    const seen = tuning.filter(({ sample }) => !shown.has(exampleText(sample)));
    const threshold = bestThreshold(seen, values, current.threshold);
    const accuracy = accuracyAt(threshold, seen, values);
    if (best === undefined || accuracy > best.accuracy + 1e-9)
      best = { evaluator: { ...candidate, threshold }, values, accuracy };
  }
  const { evaluator: found, values: after } = best!;
  if (found.threshold === current.threshold && found.options === current.options)
    return finished(current, before, {
      verdict: "no_better",
      summary: "Nothing that was tried agreed with more of the labels to tune by.",
      ...nothing,
    });
  const compared = comparePaired(
    heldOut.flatMap(({ caseId, passed, sample }) => {
      const [old, fresh] = [before.get(caseId), after.get(caseId)];
      return old === undefined || fresh === undefined
        ? []
        : [
            {
              cluster: sample.case.cluster ?? `case ${caseId}`,
              before: Number(old >= current.threshold === passed),
              after: Number(fresh >= found.threshold === passed),
            },
          ];
    }),
  );
  const losses = compared?.intervalAt(confidence);
  const interval: Interval | undefined = losses && [-losses[1], -losses[0]];
  const gain = compared && -compared.loss;
  const isBetter = interval !== undefined && interval[0] > 0;
  const figures =
    compared === undefined || interval === undefined || gain === undefined
      ? "no held-out label has verdicts of both"
      : `on ${compared.count} held-out labels ${(100 * compared.meanBefore).toFixed(1)} % became ${(100 * compared.meanAfter).toFixed(1)} % (${100 * confidence} % interval of the gain ${(100 * interval[0]).toFixed(1)} to ${(100 * interval[1]).toFixed(1)} points)`;
  return isBetter
    ? finished({ ...found, version: current.version + 1 }, after, {
        verdict: "better",
        summary: `Better: ${figures}.`,
        gain,
        interval,
      })
    : finished(current, before, {
        verdict: "no_better",
        summary: `No better, as far as the labels can tell: ${figures}.`,
        gain,
        interval,
      });
}

/** The judge's score of each case; none where it failed. */
export type Values = ReadonlyMap<string, number | undefined>;

/** What an evaluator says of labelled samples, in their order. */
export async function judgedValues(
  authored: AuthoredEvaluator,
  labelled: readonly { readonly caseId: string; readonly sample: Sample }[],
  { judge, concurrency = 8, signal }: Pick<ImproveOptions, "judge" | "concurrency" | "signal">,
): Promise<Values> {
  const values = new Map<string, number | undefined>();
  const runner = new LocalRunner({ concurrency });
  const samples = labelled.map(({ sample }) => sample);
  for await (const { caseId, score } of runner.run(samples, [runnableEvaluator(authored, judge)], { signal }))
    values.set(caseId, score.status === "scored" ? score.value : undefined);
  return values;
}

function lackOf(tuning: readonly HumanLabel[], heldOut: readonly HumanLabel[]): string | undefined {
  for (const [labels, what] of [
    [tuning, "tune by"],
    [heldOut, "judge by"],
  ] as const) {
    const numPassed = labels.filter(({ passed }) => passed).length;
    if (labels.length < fewestLabels)
      return `${labels.length} labels to ${what}; at least ${fewestLabels} are needed: label more cases.`;
    if (numPassed === 0 || numPassed === labels.length)
      return `All ${labels.length} labels to ${what} say ${numPassed === 0 ? "fail" : "pass"}: label cases that ${numPassed === 0 ? "pass" : "fail"}.`;
  }
  return undefined;
}

/** Other examples, other criteria, and both. */
async function variants(
  current: AuthoredEvaluator,
  tuning: readonly LabelledSample[],
  values: Values,
  { desk }: ImproveOptions,
): Promise<readonly AuthoredEvaluator[]> {
  const errors = tuning
    .flatMap((one) => {
      const value = values.get(one.caseId);
      return value === undefined || value >= current.threshold === one.passed ? [] : [{ ...one, value }];
    })
    .toSorted((a, b) => Math.abs(b.value - current.threshold) - Math.abs(a.value - current.threshold));
  if (errors.length === 0) return [];
  const half = Math.ceil(mostExamples / 2);
  const taught = [true, false].flatMap((passed) =>
    errors.filter((one) => one.passed === passed).slice(0, half),
  );
  const examples = taught.map(({ sample, passed }) => ({
    inputs: exampleText(sample),
    output: Number(passed),
  }));
  const withExamples = { ...current, options: { ...current.options, few_shot_examples: examples } };
  if (desk === undefined) return [withExamples];
  const shown = errors
    .slice(0, 6)
    .map(({ sample, passed, value }, index) =>
      material(
        `Answer ${index + 1}, which ${passed ? "passes" : "fails"} and was scored ${value.toFixed(2)}`,
        exampleText(sample),
      ),
    );
  const [criteria] = await desk.texts(
    `${material("The rule", current.statement)}\n\n${material("The criteria", current.options.grading_criteria)}\n\nWith these criteria a judge got these answers wrong:\n\n${shown.join("\n\n")}\n\nWrite criteria under which it gets them right, and others of their kind.`,
    "criteria",
  );
  if (criteria === undefined) return [withExamples];
  const rewritten = { ...current, options: { ...current.options, grading_criteria: criteria } };
  return [
    withExamples,
    rewritten,
    { ...rewritten, options: { ...rewritten.options, few_shot_examples: examples } },
  ];
}

function exampleText({ answer }: Sample): string {
  return answer.text.slice(0, longestExample);
}

/** Scores are tenths, or means of them: between neighbours, the one that agrees most; of equals the nearest to what it was. */
function bestThreshold(labelled: readonly HumanLabel[], values: Values, current: number): number {
  const seen = [...new Set(labelled.flatMap(({ caseId }) => values.get(caseId) ?? []))].toSorted(
    (a, b) => a - b,
  );
  const borders = seen.slice(1).map((value, index) => (value + seen[index]!) / 2);
  return [current, ...borders.toSorted((a, b) => Math.abs(a - current) - Math.abs(b - current))].reduce(
    (best, one) =>
      accuracyAt(one, labelled, values) > accuracyAt(best, labelled, values) + 1e-9 ? one : best,
  );
}

/** Balanced: half of the shares of passes and of fails that are shared. */
function accuracyAt(threshold: number, labelled: readonly HumanLabel[], values: Values): number {
  const shares = [true, false].map((passed) => {
    const own = labelled.filter((one) => one.passed === passed && values.get(one.caseId) !== undefined);
    const right = own.filter(({ caseId }) => values.get(caseId)! >= threshold === passed);
    return own.length === 0 ? 0 : right.length / own.length;
  });
  return (shares[0]! + shares[1]!) / 2;
}

function measuredOf(
  { threshold }: AuthoredEvaluator,
  labelled: readonly HumanLabel[],
  values: Values,
  confidence: number,
): MeasuredAgreement {
  const report = calibrate(
    labelled.map(({ caseId, passed }) => ({ human: passed, judged: scoreOf(values.get(caseId), threshold) })),
    [],
    { confidence, minimumPerLabel: 5 },
  );
  if (report.status === "refused") return { labels: report.numLabels, refused: report.reason };
  const { kappa, balancedAccuracy } = report;
  return {
    labels: report.numLabels,
    balanced_accuracy: balancedAccuracy.estimate,
    balanced_accuracy_interval: [...balancedAccuracy.interval],
    ...definedFields({
      kappa: kappa.kappa,
      kappa_interval: kappa.interval && ([...kappa.interval] as [number, number]),
    }),
  };
}

function scoreOf(value: number | undefined, threshold: number): Score {
  return value === undefined
    ? { status: "failed", code: "judge_failed", reason: "no verdict" }
    : { status: "scored", value, passed: value >= threshold };
}
