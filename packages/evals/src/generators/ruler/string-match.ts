import { z } from "zod";
import { defineEvaluator, type EvaluatorEntry } from "../../evaluators/registry.js";

/**
 * RULER's scores: the share of the references that the text contains, or whether it contains any; letter case does not
 * count.
 */
export function stringMatch(text: string, references: readonly string[], match: "all" | "part"): number {
  const lower = text.toLowerCase();
  const found = references.filter((reference) => lower.includes(reference.toLowerCase())).length;
  if (references.length === 0) return 0;
  return match === "all" ? found / references.length : Math.min(1, found);
}

/** Reads `references` and `match` of generated cases; others' expected outputs are alternatives. */
export const stringMatchEvaluator: EvaluatorEntry = defineEvaluator({
  name: "string_match",
  description: "The share of the expected strings that the output contains, as RULER scores its tasks.",
  inputs: ["output", "expectedOutput"],
  output: "score",
  passThreshold: 1,
  options: z.strictObject({ match: z.enum(["all", "part"]).optional() }),
  score({ case: { expected, metadata }, answer }, options) {
    const references = generatedReferences(metadata["references"]) ?? expected.outputs ?? [];
    const match = options.match ?? (metadata["match"] === "all" ? "all" : "part");
    const value = stringMatch(answer.text, references, match);
    return { status: "scored", value, details: { references: references.length, match } };
  },
});

function generatedReferences(value: unknown): readonly string[] | undefined {
  return Array.isArray(value) && value.every((one) => typeof one === "string") ? value : undefined;
}
