import {
  carriedAnswer,
  concurrently,
  type DistilledClassifier,
  embedderOf,
  type EvalCase,
  type Evaluator,
  evaluatorFileFormat,
  type EvaluatorSpec,
  type JudgeModel,
  sampleEmbedding,
} from "@octavo/evals";
import { OctavoError } from "@octavo/protocol";
import { type Distilled, distilJudge, type DistilOptions, type JudgedVector } from "./distil.js";

/** What a judge is distilled from, and what it must reach. */
export interface DistilEvaluatorOptions extends Pick<DistilOptions, "agreement" | "confidence" | "seed"> {
  /** What is imitated, as configuration files write it. */
  readonly spec: EvaluatorSpec;
  readonly evaluator: Evaluator;
  /** Cases that carry an answer. */
  readonly cases: AsyncIterable<EvalCase> | Iterable<EvalCase>;
  /** Metadata field that holds the output. Default `output`. */
  readonly outputField?: string;
  readonly judge: JudgeModel;
  readonly embeddings: Omit<DistilledClassifier["embeddings"], "dimensions">;
  /** What the classifier sees. Default the output alone. */
  readonly inputs?: DistilledClassifier["inputs"];
  /** Share of its decisions on which the judge is asked all the same, when the cascade runs. Default 0.05. */
  readonly auditShare?: number;
  readonly concurrency?: number;
  readonly signal: AbortSignal;
  readonly onJudged?: (done: number) => void;
}

/** A distilled judge as an evaluator's file. */
export interface DistilledEvaluator extends Distilled {
  readonly numJudged: number;
  /** Cases that the judge gave no verdict on. */
  readonly numFailed: number;
  /** An evaluator's file: a cascade of classifier and judge; undefined where nothing could be certified. */
  readonly file: Readonly<Record<string, unknown>> | undefined;
}

/**
 * Asks a judge about cases, learns its verdicts, and makes a cascade of what was learned and the judge.
 * @throws OctavoError `dataset_invalid` as `distilJudge` does, `judge_failed` where embeddings cannot be had, `invalid_option`
 */
export async function distilEvaluator(options: DistilEvaluatorOptions): Promise<DistilledEvaluator> {
  const {
    spec,
    evaluator,
    cases,
    judge,
    embeddings,
    signal,
    outputField = "output",
    concurrency = 8,
  } = options;
  const inputs = options.inputs ?? ["output"];
  const differences = inputs.length > 1;
  const embedder = embedderOf({ embeddings }, { judge });
  const rows: JudgedVector[] = [];
  let numFailed = 0;
  let numJudged = 0;
  for await (const row of concurrently(
    cases,
    concurrency,
    async (evalCase, own): Promise<JudgedVector | undefined> => {
      const sample = { case: evalCase, answer: await carriedAnswer(evalCase, outputField, own) };
      const score = await evaluator.evaluate(sample, { signal: own });
      if (score.status !== "scored") return undefined;
      const vector = await sampleEmbedding(sample, { inputs, embeddings, differences }, embedder, own);
      return { caseId: evalCase.id, vector, passed: score.passed, cluster: evalCase.cluster };
    },
    signal,
  )) {
    if (row === undefined) numFailed += 1;
    else rows.push(row);
    options.onJudged?.((numJudged += 1));
  }
  if (rows.length === 0)
    throw new OctavoError(
      "dataset_invalid",
      `${evaluator.name} gave no verdict on any of ${numJudged} cases`,
    );
  // answers come in the order in which they end: what is learned must not depend on it
  rows.sort((a, b) => (a.caseId < b.caseId ? -1 : 1));
  const dimensions = dimensionsOf(rows[0]?.vector.length ?? 0, inputs.length);
  const imitates = `${evaluator.name} by ${evaluator.fingerprint ?? evaluator.judge ?? "a rule"}`;
  const { agreement, confidence, seed } = options;
  const distilled = distilJudge(rows, {
    imitates,
    embeddings: { ...embeddings, dimensions },
    inputs,
    differences,
    ...(agreement === undefined ? {} : { agreement }),
    ...(confidence === undefined ? {} : { confidence }),
    ...(seed === undefined ? {} : { seed }),
  });
  return { ...distilled, numJudged, numFailed, file: fileOf(distilled, spec, options.auditShare ?? 0.05) };
}

/** Of one embedding, by how many numbers there are of all inputs and their differences. */
function dimensionsOf(width: number, numInputs: number): number {
  const pairs = (numInputs * (numInputs - 1)) / 2;
  return (width - pairs) / (numInputs + pairs);
}

function fileOf(
  { classifier, saved }: Distilled,
  spec: EvaluatorSpec,
  auditShare: number,
): DistilledEvaluator["file"] {
  if (classifier === undefined) return undefined;
  const {
    agreement,
    confidence,
    lower_bound: bound,
    decided,
    agreed,
    certified_on: numCertified,
  } = classifier.guarantee;
  return {
    format: evaluatorFileFormat,
    about: `Imitates ${classifier.imitates}. On ${numCertified} cases that it had not seen it decided ${decided} (${(100 * saved).toFixed(1)} % of the judge's calls are saved), ${agreed} of them as the judge does: with ${100 * confidence} % confidence at least ${(100 * bound).toFixed(2)} % agreement (${100 * agreement} % was asked for).`,
    name: "cascade",
    as: spec.as ?? spec.name,
    options: {
      audit_share: auditShare,
      stages: [
        { evaluator: { name: "distilled_judge", options: classifier }, certainty: 0.5 },
        { evaluator: spec },
      ],
    },
  };
}
