import { type Evaluator, evaluatorFileFormat, evaluatorTable, type JudgeModel } from "@octavo/evals";
import { OctavoError } from "@octavo/protocol";
import { YamlSource } from "@octavo/protocol/yaml";
import { Document } from "yaml";
import { z } from "zod";

const interval = z.tuple([z.number(), z.number()]).optional();

/** How far an evaluator agrees with people, on labels that were drawn at random. */
const measuredSchema = z.strictObject({
  labels: z.int().min(0),
  kappa: z.number().optional(),
  kappa_interval: interval,
  balanced_accuracy: z.number().optional(),
  balanced_accuracy_interval: interval,
  /** Why there are no figures. */
  refused: z.string().optional(),
});

const authoredSchema = z.strictObject({
  format: z.literal(evaluatorFileFormat),
  statement: z.string().trim().min(1).max(10_000),
  version: z.int().min(1),
  name: z.literal("custom_llm_judge"),
  as: z.string(),
  /** From which score on an answer passes. */
  threshold: z.number().min(0).max(1),
  options: z.looseObject({
    grading_criteria: z.string().trim().min(1),
    few_shot_examples: z.array(z.strictObject({ inputs: z.string(), output: z.number() })).default([]),
  }),
  measured: measuredSchema.optional(),
  /** The judge's scores of labelled cases when this version was written: what drift is seen by. */
  anchors: z.record(z.string(), z.number()).default({}),
});

/** An evaluator written from a sentence, as its file holds it. */
export type AuthoredEvaluator = z.output<typeof authoredSchema>;
/** How far an authored evaluator agreed with its labels. */
export type MeasuredAgreement = z.output<typeof measuredSchema>;

/** @throws OctavoError `invalid_option` with the line of what is wrong */
export function parseAuthoredEvaluator(path: string | undefined, text: string): AuthoredEvaluator {
  const source = new YamlSource(path, text);
  const parsed = authoredSchema.safeParse(source.value);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw source.problem(issue?.path ?? [], issue?.message ?? "not an evaluator");
}

/** As YAML that a person reads and edits. */
export function authoredEvaluatorText(evaluator: AuthoredEvaluator): string {
  const document = new Document(evaluator);
  document.commentBefore =
    " An evaluator: edit it freely, and use it as `file: THIS_FILE` in eval.yaml or with --evaluator.\n `octavo eval improve` writes a new version only where held-out labels show it to be better.";
  return document.toString({ lineWidth: 120, blockQuote: "literal" });
}

/** @throws OctavoError `invalid_option` for options that the judge does not know */
export function runnableEvaluator(
  authored: AuthoredEvaluator,
  judge: JudgeModel,
  as = authored.as,
): Evaluator {
  const { name, threshold, options } = authored;
  const [evaluator] = evaluatorTable.create([{ name, as, threshold, options }], { judge });
  if (evaluator === undefined) throw new OctavoError("internal_error", "no evaluator was made");
  return evaluator;
}

/** Derives an evaluator's name from its statement, as people would abbreviate it. */
export function nameOf(statement: string): string {
  const words = statement.toLowerCase().match(/[a-z0-9]+/g) ?? [];
  return words.slice(0, 6).join("_").slice(0, 48) || "authored";
}
