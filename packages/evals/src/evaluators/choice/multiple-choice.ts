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

export const multipleChoiceEvaluator: EvaluatorEntry = defineEvaluator({
  name: "multiple_choice",
  description: "The output settles on the letter of the right choice.",
  inputs: ["output", "expectedOutput"],
  options: z.strictObject({ choices: z.int().min(2).max(26).default(10) }),
  score({ case: { expected }, answer }, { choices }) {
    const wanted = (expected.outputs ?? []).flatMap(
      (text) => chosenLetter(text.toUpperCase(), choices) ?? [],
    );
    if (wanted.length === 0) return skipped("the expected output is no letter of a choice");
    const letter = chosenLetter(answer.text, choices);
    if (letter === undefined) return verdict(false, "the output settles on no letter", { letter: null });
    return verdict(wanted.includes(letter), `it settles on ${letter}, not ${wanted.join(" or ")}`, {
      letter,
    });
  },
});
