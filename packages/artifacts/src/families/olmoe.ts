import { decoder } from "../program/layers.js";
import { qwenExpertNames } from "../program/mixture-of-experts.js";
import type { ModelFamily } from "../program/model-family.js";

/** OLMoE (arXiv 2409.02060): q and k are normalised over all heads; many small experts. */
export const olmoe: ModelFamily = {
  architectures: ["OlmoeForCausalLM"],
  plan: (builder) => {
    const { attentionBias, attentionOutputBias } = builder.config;
    return decoder(builder, (layer) => {
      layer.attention({ qkvBias: attentionBias, outputBias: attentionOutputBias, queryKeyNorm: "whole" });
      layer.experts(qwenExpertNames);
    });
  },
};
