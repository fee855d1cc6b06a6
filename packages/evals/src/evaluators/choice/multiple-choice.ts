import { z } from "zod";
import { skipped, verdict } from "../outcomes.js";
import { defineEvaluator, type EvaluatorEntry } from "../registry.js";

/**
 * The letter that an answer settles on, by the patterns of MMLU-Pro's and LongBench v2's own scorers, in their order: `the
 * answer is (X)`, `Answer: X`, LaTeX's box, a letter that is the whole answer or opens it, and last the last letter that
 * stands alone. Undefined where there is none: no letter is ever drawn by lot.
 */
export function chosenLetter(text: string, numChoices: number): string | undefined {
  const last = String.fromCharCode(64 + numChoices);
  const letter = `([A-${last}])`;
  const plain = text.replaceAll("*", "").trim();
  const patterns = [
    `[aA]nswer is:?\\s{0,5}\\(?${letter}\\b\\)?`,
    `[aA]nswer\\s{0,3}:\\s{0,5}\\(?${letter}\\b`,
    `\\\\boxed\\{\\s{0,5}(?:\\\\text\\{)?\\(?${letter}\\b`,
    `^\\(?${letter}(?:[).:]|$)`,
  ];
  for (const pattern of patterns) {
    const found = new RegExp(pattern).exec(plain);
    if (found?.[1] !== undefined) return found[1];
  }
  // a word like `I` or an article `A` is a letter alone as well: those count only in brackets or at a line's end
  const alone = new RegExp(`\\(${letter}\\)|(?<![\\p{L}\\p{N}'’])${letter}(?=[.)]?\\s*(?:\\n|$))`, "gu");
  let chosen: string | undefined;
  for (const match of plain.matchAll(alone)) chosen = match[1] ?? match[2];
  return chosen;
}

/** As the benchmark's own script finds the letter, and no other way. */
const published: Readonly<Record<"mmlu-pro" | "longbench-v2", (text: string) => string | undefined>> = {
  "mmlu-pro": (text) =>
    /answer is \(?([A-J])\)?/.exec(text)?.[1] ??
    /.*[aA]nswer:\s*([A-J])/.exec(text)?.[1] ??
    [...text.matchAll(/\b[A-J]\b/g)].at(-1)?.[0],
  "longbench-v2": (text) => /The correct answer is \(?([A-D])\)?/.exec(text.replaceAll("*", ""))?.[1],
};

export const multipleChoiceEvaluator: EvaluatorEntry = defineEvaluator({
  name: "multiple_choice",
  description: "The output settles on the letter of the right choice.",
  inputs: ["output", "expectedOutput"],
  options: z.strictObject({
    choices: z.int().min(2).max(26).default(10),
    /** `any`: whatever way of settling on a letter; else as the benchmark's script reads answers. */
    scoring: z.enum(["any", "mmlu-pro", "longbench-v2"]).default("any"),
  }),
  score({ case: { expected }, answer }, { choices, scoring }) {
    const wanted = (expected.outputs ?? []).flatMap(
      (text) => chosenLetter(text.toUpperCase(), choices) ?? [],
    );
    if (wanted.length === 0) return skipped("the expected output is no letter of a choice");
    const letter = scoring === "any" ? chosenLetter(answer.text, choices) : published[scoring](answer.text);
    if (letter === undefined)
      return verdict(false, "the output settles on no letter", { letter: null, scoring });
    return verdict(wanted.includes(letter), `it settles on ${letter}, not ${wanted.join(" or ")}`, {
      letter,
      scoring,
    });
  },
});
