import { z } from "zod";
import { measured, skipped } from "../evaluators/outcomes.js";
import { defineEvaluator, type EvaluatorEntry } from "../evaluators/registry.js";
import { sentencesOf } from "../evaluators/text/sentences.js";
import { fingerprintOf, judgeOf } from "./judge-services.js";
import { judgeRole } from "./rubric-question.js";
import { showTexts } from "./sample-texts.js";

const labels = ["entailed", "contradicted", "unknown"] as const;

const criterion = `To decide: does the context entail the claim, as in natural language inference?
entailed: if the context is true, the whole claim must be true.
contradicted: the claim cannot be true where the context is.
unknown: the context neither entails nor contradicts all of the claim. What is true in the world but not said in the context is unknown.`;

/** Sentences of an output that are asked about; the rest of a longer one is not scored. */
const mostClaims = 100;
const mostShown = 5;

/**
 * Groundedness sentence by sentence (as MiniCheck, arXiv 2404.10774, and SummaC, arXiv 2111.09525, take it): each sentence of the
 * output is a claim, and the judge says whether the context entails it, with the probability of that where its server gives
 * logprobs.
 */
export const entailmentEvaluator: EvaluatorEntry = defineEvaluator({
  name: "nli_groundedness",
  description:
    "Mean probability, over the output's sentences, that the context entails the sentence; one question to the judge for each.",
  inputs: ["output", "context"],
  output: "score",
  passThreshold: 0.8,
  needsJudge: true,
  options: z.strictObject({ model: z.string().min(1).max(4096).optional() }),
  create({ model }, services) {
    const judge = judgeOf(services, model);
    return {
      judge: judge.name,
      fingerprint: fingerprintOf(judge, criterion),
      async score({ case: { context }, answer }, { signal }) {
        const claims = sentencesOf(answer.text);
        if (claims.length === 0) return skipped("the output has no sentences");
        const asked = claims.slice(0, mostClaims);
        const verdicts = await Promise.all(
          asked.map(async (claim) => {
            const user = showTexts([
              { name: "context", text: context ?? "" },
              { name: "claim", text: claim },
            ]);
            const system = `${judgeRole}\n\n${criterion}`;
            const { label, probabilities } = await judge.ask(
              { system, user, labels, withReason: false },
              { signal },
            );
            return { claim, label, entailed: probabilities?.["entailed"] ?? Number(label === "entailed") };
          }),
        );
        const value = verdicts.reduce((sum, { entailed }) => sum + entailed, 0) / verdicts.length;
        const others = verdicts.filter(({ label }) => label !== "entailed");
        return measured(Math.min(1, value), {
          details: {
            sentences: claims.length,
            asked: asked.length,
            contradicted: others.filter(({ label }) => label === "contradicted").length,
            unknown: others.filter(({ label }) => label === "unknown").length,
          },
          ...(others.length > 0 && {
            reason: others
              .slice(0, mostShown)
              .map(({ label, claim }) => `${label}: ${claim.slice(0, 200)}`)
              .join("\n"),
          }),
        });
      },
    };
  },
});
