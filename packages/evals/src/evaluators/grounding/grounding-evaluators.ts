import { normalizeUnicode } from "@octavo/text/tokenizer/unicode-normalization";
import { measured, skipped } from "../outcomes.js";
import { defineEvaluator, type EvaluatorEntry } from "../registry.js";
import { citationsIn, citedSentences, sourceIds } from "./citations.js";

const inputs = ["output", "context"] as const;

/** What can be told of an output beside its context without understanding either: no measure of groundedness. */
export const groundingEvaluators: readonly EvaluatorEntry[] = [
  defineEvaluator({
    name: "citation_coverage",
    description: "Share of the output's sentences that cite a source of the context.",
    inputs,
    output: "score",
    passThreshold: 0.8,
    score({ case: { context }, answer }) {
      const sources = sourceIds(context ?? "");
      if (sources.size === 0) return skipped("the context names no sources");
      const sentences = citedSentences(answer.text);
      if (sentences.length === 0) return skipped("the output has no sentences");
      const cited = sentences.filter(({ ids }) => ids.some((id) => sources.has(id))).length;
      return measured(cited / sentences.length, { details: { sentences: sentences.length, cited } });
    },
  }),
  defineEvaluator({
    name: "citation_validity",
    description: "Share of the output's citations that are of a source of the context.",
    inputs,
    output: "score",
    passThreshold: 1,
    score({ case: { context }, answer }) {
      const sources = sourceIds(context ?? "");
      const citations = citationsIn(answer.text);
      if (citations.length === 0) return skipped("the output cites nothing");
      const unknown = citations.filter((id) => !sources.has(id));
      const value = 1 - unknown.length / citations.length;
      const reason = `not in the context: ${[...new Set(unknown)].slice(0, 10).join(", ")}`;
      return measured(value, unknown.length === 0 ? {} : { reason });
    },
  }),
  defineEvaluator({
    name: "context_word_overlap",
    description:
      "Share of the output's words of four letters or more that come in the context; it knows no meaning.",
    inputs,
    output: "score",
    score({ case: { context }, answer }) {
      const words = longWords(answer.text);
      if (words.size === 0) return skipped("the output has no words of four letters");
      const known = longWords(context ?? "");
      return measured([...words].filter((word) => known.has(word)).length / words.size);
    },
  }),
];

function longWords(text: string): Set<string> {
  return new Set(normalizeUnicode(text.toLowerCase(), "NFC").match(/[\p{L}\p{N}]{4,}/gu) ?? []);
}
