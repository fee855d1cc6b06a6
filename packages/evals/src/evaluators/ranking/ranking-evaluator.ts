import { z } from "zod";
import { readFencedJson } from "../json/read-json.js";
import { measured } from "../outcomes.js";
import { defineEvaluator } from "../registry.js";

const measures = ["ndcg", "reciprocal_rank", "average_precision", "recall"] as const;

/** Items in the order of the output: a JSON array of texts, or a line each, with numbers and bullets left out. */
function rankedItems(text: string): readonly string[] {
  const read = readFencedJson(text);
  const items =
    "value" in read && Array.isArray(read.value)
      ? read.value.map((item) => (typeof item === "string" ? item : JSON.stringify(item)))
      : text.split(/\r?\n/).map((line) => line.replace(/^\s*(?:[-*•]|\d+[.)])\s+/, ""));
  return [...new Set(items.map((item) => item.trim()).filter((item) => item !== ""))];
}

export const rankingEvaluator = defineEvaluator({
  name: "ranking",
  description:
    "How well the output, a list, ranks the expected items before all others: NDCG (Järvelin and Kekäläinen 2002), reciprocal rank, average precision or recall, of its first `k`.",
  inputs: ["output", "expectedOutput"],
  output: "score",
  options: z.strictObject({ measure: z.enum(measures).default("ndcg"), k: z.int().min(1).optional() }),
  score(sample, { measure, k }) {
    const relevant = new Set((sample.case.expected.outputs ?? []).map((item) => item.trim()));
    const isHit = rankedItems(sample.answer.text)
      .slice(0, k)
      .map((item) => relevant.has(item));
    const places = isHit.flatMap((hit, place) => (hit ? [place] : []));
    const most = Math.min(relevant.size, k ?? relevant.size);
    const gain = (place: number): number => 1 / Math.log2(place + 2);
    const sum = (values: readonly number[]): number => values.reduce((all, value) => all + value, 0);
    const value = {
      ndcg: () => sum(places.map(gain)) / sum(Array.from({ length: most }, (_, place) => gain(place))),
      reciprocal_rank: () => (places[0] === undefined ? 0 : 1 / (places[0] + 1)),
      average_precision: () => sum(places.map((place, found) => (found + 1) / (place + 1))) / relevant.size,
      recall: () => places.length / relevant.size,
    }[measure]();
    return measured(Math.min(1, value), { details: { found: places.length, of: relevant.size } });
  },
});
