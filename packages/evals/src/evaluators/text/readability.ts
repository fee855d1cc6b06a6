import { z } from "zod";
import { skipped, verdict } from "../outcomes.js";
import { defineEvaluator } from "../registry.js";
import { sentencesOf } from "./sentences.js";

interface TextCounts {
  readonly words: number;
  readonly sentences: number;
  /** That are no white space. */
  readonly characters: number;
  readonly letters: number;
  /** Words of more than six letters. */
  readonly longWords: number;
}

/** Formulas that count no syllables: those need a dictionary of the language. All rise with difficulty. */
const formulas = {
  /** Automated readability index (Senter and Smith 1967): about the school year in the United States. */
  ari: ({ characters, words, sentences }: TextCounts) =>
    4.71 * (characters / words) + 0.5 * (words / sentences) - 21.43,
  /** Coleman and Liau (1975): likewise. */
  coleman_liau: ({ letters, words, sentences }: TextCounts) =>
    5.88 * (letters / words) - 29.6 * (sentences / words) - 15.8,
  /** Läsbarhetsindex (Björnsson 1968), for any language with words: below 30 very easy, above 60 very hard. */
  lix: ({ longWords, words, sentences }: TextCounts) => words / sentences + (100 * longWords) / words,
} as const;

const veryHard: Readonly<Record<keyof typeof formulas, number>> = { ari: 16, coleman_liau: 16, lix: 60 };

function countsOf(text: string): TextCounts {
  const words = text.split(/\s+/).flatMap((word) => {
    const letters = word.match(/[\p{L}\p{M}\p{N}]/gu)?.length ?? 0;
    return letters === 0 ? [] : [letters];
  });
  return {
    words: words.length,
    sentences: sentencesOf(text).length,
    characters: Array.from(text.replaceAll(/\s/g, "")).length,
    letters: words.reduce((sum, letters) => sum + letters, 0),
    longWords: words.filter((letters) => letters > 6).length,
  };
}

export const readabilityEvaluator = defineEvaluator({
  name: "readability",
  description:
    "The output is as hard to read as it may be: the automated readability index (`ari`), Coleman and Liau's (`coleman_liau`) or `lix` is from `min` to `max`.",
  options: z.strictObject({
    formula: z.enum(["ari", "coleman_liau", "lix"]).default("lix"),
    min: z.number().optional(),
    /** Default, where there is no `min` either: what is very hard to read. */
    max: z.number().optional(),
  }),
  score({ answer }, { formula, ...given }) {
    const { min = Number.NEGATIVE_INFINITY, max = Number.POSITIVE_INFINITY } =
      given.min === undefined && given.max === undefined ? { max: veryHard[formula] } : given;
    const counts = countsOf(answer.text);
    if (counts.words === 0) return skipped("the output has no words");
    const index = formulas[formula](counts);
    const reason = `${formula} is ${index.toFixed(1)}, not ${Number.isFinite(min) ? `from ${min}` : ""} ${Number.isFinite(max) ? `to ${max}` : ""}`;
    return verdict(index >= min && index <= max, reason.trim(), { [formula]: index, ...counts });
  },
});
