import { z } from "zod";
import type { Sample } from "../evaluator.js";
import { measured } from "../outcomes.js";
import { defineEvaluator, type EvaluatorEntry } from "../registry.js";
import { bleu, bleuCounts } from "./bleu.js";
import { chrf, chrfCounts } from "./chrf.js";
import { type Rouge, rougeL, rougeLsum, rougeN } from "./rouge.js";

const inputs = ["output", "expectedOutput"] as const;

const referencesOf = (sample: Sample): readonly string[] => sample.case.expected.outputs ?? [];

function rougeEvaluator(
  name: string,
  description: string,
  rouge: (output: string, reference: string) => Rouge,
): EvaluatorEntry {
  return defineEvaluator({
    name,
    description,
    inputs,
    output: "score",
    options: z.strictObject({ measure: z.enum(["f", "precision", "recall"]).default("f") }),
    score(sample, { measure }) {
      const all = referencesOf(sample).map((reference) => rouge(sample.answer.text, reference));
      const best = all.reduce((a, b) => (b.f > a.f ? b : a));
      return measured(best[measure], { details: { ...best } });
    },
  });
}

/** Overlap of words or characters with reference texts: cheap, and blind to meaning. */
export const overlapEvaluators: readonly EvaluatorEntry[] = [
  defineEvaluator({
    name: "bleu_score",
    description:
      "Sentence BLEU against the expected outputs, as sacreBLEU computes it: 13a tokens, exponential smoothing.",
    inputs,
    output: "score",
    options: z.strictObject({ ignoreCase: z.boolean().default(false) }),
    score(sample, { ignoreCase }) {
      const counts = bleuCounts(sample.answer.text, referencesOf(sample), ignoreCase);
      // sums of these give the corpus's BLEU, which is no mean of sentences
      return measured(bleu(counts, true), { details: { ...counts } });
    },
  }),
  rougeEvaluator(
    "rouge_1",
    "ROUGE-1 against the nearest expected output: words in common.",
    (output, reference) => rougeN(output, reference, 1),
  ),
  rougeEvaluator(
    "rouge_2",
    "ROUGE-2 against the nearest expected output: pairs of words in common.",
    (output, reference) => rougeN(output, reference, 2),
  ),
  rougeEvaluator(
    "rouge_l",
    "ROUGE-L against the nearest expected output: the longest common subsequence of words.",
    rougeL,
  ),
  rougeEvaluator(
    "rouge_lsum",
    "ROUGE-Lsum against the nearest expected output: common subsequences line by line.",
    rougeLsum,
  ),
  defineEvaluator({
    name: "chrf_score",
    description:
      "Runs of one to six characters in common with the nearest expected output: chrF as sacreBLEU computes it.",
    inputs,
    output: "score",
    score: (sample) => measured(chrf(chrfCounts(sample.answer.text, referencesOf(sample), 0))),
  }),
  defineEvaluator({
    name: "chrf_plus_plus_score",
    description:
      "Characters, words and pairs of words in common with the nearest expected output: chrF++ as sacreBLEU computes it.",
    inputs,
    output: "score",
    score: (sample) => measured(chrf(chrfCounts(sample.answer.text, referencesOf(sample), 2))),
  }),
];
