import { decoder } from "../program/layers.js";
import type { ModelFamily } from "../program/model-family.js";

/** OLMo 2 (arXiv 2501.00656): norms after the blocks alone, and of q and k over all heads. */
export const olmo2: ModelFamily = {
  architectures: ["Olmo2ForCausalLM"],
  plan: (builder) => {
    const { attentionBias, attentionOutputBias } = builder.config;
    return decoder(builder, (layer) => {
      layer.attention({
        qkvBias: attentionBias,
        outputBias: attentionOutputBias,
        queryKeyNorm: "whole",
        norms: { after: "post_attention_layernorm" },
      });
      layer.gatedMlp({ norms: { after: "post_feedforward_layernorm" } });
    });
  },
};
