import { decoder } from "./layers.js";
import { qwenExpertNames } from "./mixture-of-experts.js";
import type { ModelFamily } from "./model-family.js";

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
