import { OctavoError } from "@octavo/protocol";
import { z } from "zod";
import { measured } from "../evaluators/outcomes.js";
import { defineEvaluator, type EvaluatorEntry } from "../evaluators/registry.js";
import { fingerprintOf, judgeOf } from "./judge-services.js";

export const embeddingSimilarityEvaluator: EvaluatorEntry = defineEvaluator({
  name: "embedding_similarity",
  description:
    "Cosine of the embeddings of the output and of the nearest expected output, by a model of the judge's server (`/v1/embeddings`); opposite directions count as 0.",
  inputs: ["output", "expectedOutput"],
  output: "score",
  passThreshold: 0.8,
  needsJudge: true,
  options: z.strictObject({
    /** The embedding model, where the judge's endpoint serves it beside the judge. */
    model: z.string().min(1).max(4096).optional(),
  }),
  create({ model }, services) {
    const judge = judgeOf(services, model);
    const { embed } = judge;
    if (embed === undefined)
      throw new OctavoError("invalid_option", `the judge ${judge.name} gives no embeddings`, {
        param: "judge",
      });
    return {
      judge: judge.name,
      fingerprint: fingerprintOf(judge, "embeddings"),
      async score({ case: { expected }, answer }, { signal }) {
        const references = expected.outputs ?? [];
        const [own = [], ...others] = await embed([answer.text, ...references], { signal });
        const cosines = others.map((other) => cosine(own, other));
        const best = Math.max(...cosines);
        return measured(Math.min(1, Math.max(0, best)), {
          details: { cosine: best, dimensions: own.length },
        });
      },
    };
  },
});

/** 0 where one of them is a vector of zeros. */
function cosine(a: readonly number[], b: readonly number[]): number {
  let [product, ofA, ofB] = [0, 0, 0];
  for (const [index, value] of a.entries()) {
    const other = b[index] ?? 0;
    product += value * other;
    ofA += value * value;
    ofB += other * other;
  }
  return ofA === 0 || ofB === 0 ? 0 : product / Math.sqrt(ofA * ofB);
}
