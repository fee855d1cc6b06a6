import { z } from "zod";

/** Root causes that a judge may name, and no others. */
export const judgedCauses = {
  chat_template:
    "the prompt lacks the form that the model was trained on: markers of another model, roles that run together",
  tool_parser: "calls of tools stand in the text as markup, or come back without their arguments",
  precision: "words are garbled or repeated without end, as from weights or a cache that are too coarse",
  sampling: "the text is sound but wanders or varies where one answer was wanted",
  context: "what was needed did not fit, or the answer was cut off",
  instructions: "the prompt does not say what is wanted, or contradicts itself",
  ability: "the prompt is clear and the model is not able to do it",
  input: "the input itself is at fault",
} as const;
export type JudgedCause = keyof typeof judgedCauses;

/** What a judge said of a cluster. */
export const judgementSchema = z.strictObject({
  cause: z.enum(Object.keys(judgedCauses) as [JudgedCause, ...JudgedCause[]]).nullable(),
  /** Traces that were judged, one by one, and those of them that the cause was named for. */
  traces: z.int().positive(),
  votes: z.int().nonnegative(),
  judge: z.string(),
  /** Findings of the cluster at that time. */
  count: z.int().nonnegative(),
});
/** What a judge says caused a cluster's findings. */
export type CauseJudgement = z.output<typeof judgementSchema>;
