import { OctavoError } from "@octavo/protocol";
import { z } from "zod";
import { defineEvaluator, type EvaluatorEntry } from "../evaluators/registry.js";
import { customJudgeEvaluator } from "./custom-judge.js";
import { distilledJudgeEvaluator } from "./distilled/distilled-judge.js";
import { embeddingSimilarityEvaluator } from "./embedding-similarity.js";
import { entailmentEvaluator } from "./entailment.js";
import { fingerprintOf, judgeOf } from "./judge-services.js";
import { pairwiseEvaluator } from "./pairwise.js";
import { criterionOf, rubricOutcome, questionOf } from "./rubric-question.js";
import { rubrics } from "./rubrics.js";
import type { Rubric } from "./rubrics/rubric.js";

/** Grades from "nearly" on pass; the halfway grade does not. */
const gradeThreshold = 0.7;

const judgedOptions = z.strictObject({
  /** The judge gives a reason before its verdict: slower, and shown in reports. */
  with_reason: z.boolean().default(true),
  /** Added to the rubric, such as a policy of the product. */
  guidance: z.string().min(1).max(20_000).optional(),
  /** Another model of the judge's endpoint. */
  model: z.string().min(1).max(4096).optional(),
});

const choiceOptions = judgedOptions.extend({
  /** Labels that stand for 1, all others for 0, instead of the values of the table. */
  accepted: z.array(z.string()).min(1).optional(),
});

interface JudgedOptions {
  readonly with_reason: boolean;
  readonly guidance?: string | undefined;
  readonly model?: string | undefined;
  readonly accepted?: readonly string[] | undefined;
}

function entryOf(rubric: Rubric): EvaluatorEntry {
  const schema: z.ZodType<JudgedOptions> = rubric.output === "choice" ? choiceOptions : judgedOptions;
  return defineEvaluator({
    name: rubric.name,
    description: rubric.description,
    inputs: rubric.inputs,
    output: rubric.output,
    needsJudge: true,
    ...(rubric.output === "score" ? { passThreshold: gradeThreshold } : {}),
    options: schema,
    create(options, services) {
      const judge = judgeOf(services, options.model);
      const asked = { withReason: options.with_reason, guidance: options.guidance };
      const labels = acceptedLabels(rubric, options.accepted);
      return {
        judge: judge.name,
        fingerprint: fingerprintOf(judge, criterionOf(rubric), String(asked.withReason), asked.guidance),
        score: async (sample, { signal }) =>
          rubricOutcome(rubric, await judge.ask(questionOf(rubric, sample, asked), { signal }), labels),
      };
    },
  });
}

function acceptedLabels(rubric: Rubric, accepted: readonly string[] | undefined) {
  if (rubric.output !== "choice") return undefined;
  if (accepted === undefined) return rubric.labels;
  const known = rubric.labels.map(({ label }) => label);
  const unknown = accepted.find((label) => !known.includes(label));
  if (unknown !== undefined)
    throw new OctavoError(
      "invalid_option",
      `there is no label ${JSON.stringify(unknown.slice(0, 64))}: choose from ${known.join(", ")}`,
      { param: "accepted" },
    );
  return rubric.labels.map((one) => ({ ...one, value: accepted.includes(one.label) ? 1 : 0 }));
}

/** Every row that asks a judge. */
export const judgedEvaluators: readonly EvaluatorEntry[] = [
  ...rubrics.map(entryOf),
  pairwiseEvaluator,
  customJudgeEvaluator,
  entailmentEvaluator,
  embeddingSimilarityEvaluator,
  distilledJudgeEvaluator,
];
