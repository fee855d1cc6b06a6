import { OctavoError } from "@octavo/protocol";
import { z } from "zod";
import type { Evaluator } from "../evaluators/evaluator.js";
import { measured } from "../evaluators/outcomes.js";
import { defineEvaluator, EvaluatorTable } from "../evaluators/registry.js";
import { fingerprintOf, judgeOf } from "./judge-services.js";
import type { JudgeAnswer, JudgeModel } from "./judge.js";
import { judgeRole } from "./rubric-question.js";
import { type ShownInput, showTexts, sampleText } from "./sample-texts.js";
import { SampleTemplate } from "./template.js";

/** Scores are chosen, not written: what a judge cannot say it cannot get wrong. */
const scoreLabels = Array.from({ length: 11 }, (_, index) => (index / 10).toFixed(1));

const shot = z.strictObject({
  inputs: z.union([z.string(), z.record(z.string(), z.unknown())]),
  output: z.union([z.string(), z.number(), z.record(z.string(), z.unknown())]),
});

const customJudgeOptions = z.strictObject({
  grading_criteria: z.string().trim().min(1).max(50_000),
  /** A model of the judge's endpoint other than the judge's own. */
  model: z.string().min(1).max(4096).optional(),
  /** Instead of what every judge is told. */
  system_prompt: z.string().min(1).max(50_000).optional(),
  /** With `{{ field }}`s of the sample; without it the judge sees the input, the output, and context and golds that exist. */
  user_prompt_template: z.string().min(1).max(50_000).optional(),
  few_shot_examples: z.array(shot).max(32).default([]),
  with_reason: z.boolean().default(true),
});

/** Options of the evaluator `custom_llm_judge`, as configurations write them. */
export type CustomJudgeOptions = z.input<typeof customJudgeOptions>;

const shownByDefault: readonly (readonly [ShownInput, string])[] = [
  ["input", "input"],
  ["output", "output"],
  ["context", "context"],
  ["expectedOutput", "expected output"],
  ["baseline", "baseline output"],
];

/** A judge with criteria of the user's own, which gives a score from 0 to 1. */
export const customJudgeEvaluator = defineEvaluator({
  name: "custom_llm_judge",
  description: "A score from 0 to 1 by grading criteria of your own.",
  inputs: ["output"],
  output: "score",
  needsJudge: true,
  options: customJudgeOptions,
  create(options, services) {
    const judge = judgeOf(services, options.model);
    const template =
      options.user_prompt_template === undefined
        ? undefined
        : new SampleTemplate(options.user_prompt_template, "user_prompt_template");
    const system = systemOf(options);
    return {
      inputs: template?.inputs ?? ["output"],
      judge: judge.name,
      fingerprint: fingerprintOf(judge, system, options.user_prompt_template, String(options.with_reason)),
      async score(sample, { signal }) {
        const user =
          template?.render(sample) ??
          showTexts(
            shownByDefault.flatMap(([input, name]) => {
              const text = sampleText(sample, input);
              return text === undefined ? [] : [{ name, text }];
            }),
          );
        const question = { system, user, labels: scoreLabels, withReason: options.with_reason };
        return outcomeOf(await judge.ask(question, { signal }));
      },
    };
  },
});

/**
 * A custom judge for use in code.
 * @throws OctavoError `invalid_option` when the criteria are missing or the template names an unknown field
 */
export function customLlmJudge(
  config: CustomJudgeOptions & { readonly name?: string },
  judge: JudgeModel,
): Evaluator {
  const { name, ...options } = config;
  const spec = { name: customJudgeEvaluator.name, options, ...(name === undefined ? {} : { as: name }) };
  const [evaluator] = new EvaluatorTable([customJudgeEvaluator]).create([spec], { judge });
  if (evaluator === undefined) throw new OctavoError("internal_error", "no custom judge was made");
  return evaluator;
}

function systemOf(options: z.output<typeof customJudgeOptions>): string {
  const examples = options.few_shot_examples.map(({ inputs, output }, index) => {
    const shown = typeof inputs === "string" ? inputs : JSON.stringify(inputs);
    const given = typeof output === "string" ? output : JSON.stringify(output);
    return `Example ${index + 1}\nGiven: ${shown}\nVerdict: ${given}`;
  });
  return [
    options.system_prompt ?? judgeRole,
    `To score from 0.0 (does not meet the criteria at all) to 1.0 (meets them fully), by these criteria:\n${options.grading_criteria}`,
    ...examples,
  ].join("\n\n");
}

function outcomeOf({ label, probabilities, reason }: JudgeAnswer) {
  const value =
    probabilities === undefined
      ? Number(label)
      : scoreLabels.reduce((sum, one) => sum + Number(one) * (probabilities[one] ?? 0), 0);
  return measured(Math.min(1, Math.max(0, value)), {
    ...(reason === undefined ? {} : { reason }),
    details: { verdict: Number(label), ...(probabilities === undefined ? {} : { probabilities }) },
  });
}
