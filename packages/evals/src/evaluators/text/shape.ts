import { z } from "zod";
import { measured, verdict } from "../outcomes.js";
import { splitAtSpace } from "../overlap/ngrams.js";
import { defineEvaluator, type EvaluatorEntry } from "../registry.js";
import { comparable, comparisonOptions, quote, wantedOptions, wantedTexts } from "./comparable.js";
import { editsBetween, similarity, similarityRules } from "./edit-distance.js";
import { sentencesOf } from "./sentences.js";

const counts = {
  characters: (text: string) => Array.from(text).length,
  words: (text: string) => text.split(/\s+/).filter((word) => word !== "").length,
  sentences: (text: string) => sentencesOf(text).length,
  lines: (text: string) => (text.trim() === "" ? 0 : text.trim().split(/\r\n|[\n\r\u2028\u2029]/).length),
} as const;

/** RFC 5321's lengths, an unquoted local part, a domain with a dot. */
const emailPattern =
  /^(?=.{3,254}$)(?=[^@]{1,64}@)[\w!#$%&'*+/=?^`{|}~-]+(?:\.[\w!#$%&'*+/=?^`{|}~-]+)*@(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])$/i;

export const shapeEvaluators: readonly EvaluatorEntry[] = [
  defineEvaluator({
    name: "fuzzy_match",
    description:
      "How near the output is to the nearest expected text: one minus the share of edits. `rule: indel` is rapidfuzz's fuzz.ratio; both sides are normalised (NFC) and trimmed first.",
    inputs: ["output", "expectedOutput"],
    output: "score",
    passThreshold: 0.8,
    options: z.strictObject({
      ...comparisonOptions,
      ...wantedOptions,
      rule: z.enum(similarityRules).default("levenshtein"),
    }),
    create(options) {
      const wanted = wantedTexts(options);
      return {
        inputs: wanted.inputs,
        score(sample) {
          const output = comparable(sample.answer.text, options);
          const values = wanted
            .of(sample)
            .map((text) => similarity(output, comparable(text, options), options.rule));
          return measured(Math.max(...values));
        },
      };
    },
  }),
  defineEvaluator({
    name: "word_accuracy",
    description:
      "One minus the word error rate against the nearest expected text, 0 where it is above 1; details hold the rate itself.",
    inputs: ["output", "expectedOutput"],
    output: "score",
    passThreshold: 0.9,
    options: z.strictObject({ ...comparisonOptions, ...wantedOptions }),
    create(options) {
      const wanted = wantedTexts(options);
      return {
        inputs: wanted.inputs,
        score(sample) {
          const spoken = splitAtSpace(comparable(sample.answer.text, options));
          const rates = wanted.of(sample).map((text) => {
            const words = splitAtSpace(comparable(text, options));
            // a reference without words: one error per word, as if it had one
            return editsBetween(words, spoken) / Math.max(1, words.length);
          });
          const wordErrorRate = Math.min(...rates);
          return measured(Math.max(0, 1 - wordErrorRate), { details: { wordErrorRate } });
        },
      };
    },
  }),
  defineEvaluator({
    name: "one_line",
    description: "The output is a single line, not empty.",
    score({ answer }) {
      const lines = counts.lines(answer.text);
      return verdict(lines === 1, `it has ${lines} lines`);
    },
  }),
  defineEvaluator({
    name: "length_between",
    description: "The output's length in characters, words, sentences or lines is within bounds.",
    options: z
      .strictObject({
        unit: z.enum(["characters", "words", "sentences", "lines"]).default("characters"),
        min: z.int().nonnegative().default(0),
        max: z.int().nonnegative().optional(),
      })
      .refine(({ min, max }) => max === undefined || max >= min, "max: expected at least `min`"),
    score({ answer }, { unit, min, max = Infinity }) {
      const length = counts[unit](answer.text);
      const reason = `it has ${length} ${unit}, not ${max === Infinity ? `at least ${min}` : `${min} to ${max}`}`;
      return verdict(length >= min && length <= max, reason, { length });
    },
  }),
  defineEvaluator({
    name: "is_email",
    description: "The output is one email address.",
    score({ answer }) {
      const text = answer.text.trim();
      return verdict(text.length <= 254 && emailPattern.test(text), `${quote(text)} is not an email address`);
    },
  }),
];
