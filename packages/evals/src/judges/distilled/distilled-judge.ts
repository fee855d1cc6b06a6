import { OctavoError } from "@octavo/protocol";
import type { Sample } from "../../evaluators/evaluator.js";
import { measured, skipped } from "../../evaluators/outcomes.js";
import { defineEvaluator, type EvaluatorServices } from "../../evaluators/registry.js";
import { fingerprintOf, judgeOf } from "../judge-services.js";
import type { JudgeModel } from "../judge.js";
import { openAiJudge } from "../openai-judge.js";
import { sampleText } from "../sample-texts.js";
import {
  ClassifierModel,
  type DistilledClassifier,
  distilledClassifier,
  featureCount,
  featuresOf,
} from "./classifier.js";

/** A judge's imitation: decides what it is sure of, and leaves the rest to the judge. */
export const distilledJudgeEvaluator = defineEvaluator({
  name: "distilled_judge",
  description:
    "A classifier on embeddings that imitates a judge (`octavo eval distil` writes it): the first stage of a cascade, since it skips what it is not sure of.",
  inputs: ["output"],
  needsJudge: true,
  options: distilledClassifier,
  create(classifier, services) {
    const model = new ClassifierModel(classifier);
    const { inputs, certainty } = classifier;
    if (model.numInputs !== featureCount(classifier))
      throw new OctavoError(
        "artifact_invalid",
        "the classifier's weights do not fit its inputs: distil it again",
      );
    const embedder = embedderOf(classifier, services);
    return {
      inputs,
      judge: embedder.name,
      fingerprint: fingerprintOf(embedder, JSON.stringify(classifier)),
      async score(sample, { signal }) {
        const embedding = await sampleEmbedding(sample, classifier, embedder, signal);
        const pass = model.passProbability(embedding);
        const probability = Math.max(pass, 1 - pass);
        if (probability < certainty)
          return skipped(
            `its verdict has a probability of ${probability.toFixed(3)}; from ${certainty.toFixed(3)} on it decides`,
          );
        const label = pass >= 0.5 ? "pass" : "fail";
        return measured(Number(pass >= 0.5), { label, details: { probabilities: { pass, fail: 1 - pass } } });
      },
    };
  },
});

export interface EmbeddedInputs {
  readonly inputs: DistilledClassifier["inputs"];
  readonly embeddings: Pick<DistilledClassifier["embeddings"], "model"> &
    Partial<Pick<DistilledClassifier["embeddings"], "dimensions">>;
  readonly differences?: boolean | undefined;
}

/**
 * What a classifier sees of a sample: the embeddings of its inputs, and their differences.
 * @throws OctavoError `artifact_invalid` where they have another dimension than the classifier was trained on
 */
export async function sampleEmbedding(
  sample: Sample,
  { inputs, embeddings, differences = false }: EmbeddedInputs,
  embedder: JudgeModel,
  signal: AbortSignal,
): Promise<readonly number[]> {
  const texts = inputs.map((input) => sampleText(sample, input) ?? "");
  // not every server embeds an empty text
  const vectors =
    (await embedder.embed?.(
      texts.map((text) => (text === "" ? " " : text)),
      { signal },
    )) ?? [];
  const found = vectors[0]?.length ?? 0;
  if (embeddings.dimensions !== undefined && found !== embeddings.dimensions)
    throw new OctavoError(
      "artifact_invalid",
      `${embeddings.model} gives embeddings of ${found} dimensions, and the classifier was distilled on ${embeddings.dimensions}: the model has changed; distil the classifier again`,
    );
  return featuresOf(vectors, differences);
}

/** Whom a classifier asks for embeddings. */
export function embedderOf(
  {
    embeddings,
  }:
    | Pick<DistilledClassifier, "embeddings">
    | { readonly embeddings: Omit<DistilledClassifier["embeddings"], "dimensions"> },
  services: EvaluatorServices,
): JudgeModel {
  const { base_url: baseUrl, api_key_env: variable, model } = embeddings;
  const apiKey = variable === undefined ? undefined : process.env[variable];
  if (variable !== undefined && apiKey === undefined)
    throw new OctavoError("invalid_option", `embeddings: the environment has no ${variable}`, {
      param: "api_key_env",
    });
  const embedder =
    baseUrl === undefined
      ? judgeOf(services, model)
      : openAiJudge({ baseUrl, model, ...(apiKey === undefined ? {} : { apiKey }) });
  if (embedder.embed === undefined)
    throw new OctavoError("invalid_option", `${embedder.name} gives no embeddings`, { param: "embeddings" });
  return embedder;
}
