import { decoder } from "../program/layers.js";
import type { ModelFamily } from "../program/model-family.js";

/**
 * Gemma 2 (arXiv 2408.00118): norms before and after each block, soft-capped scores and logits, every other layer with a sliding
 * window; what the embeddings, scores and logits are multiplied by stands in the configuration.
 */
export const gemma2: ModelFamily = {
  architectures: ["Gemma2ForCausalLM"],
  plan: (builder) => {
    const { attentionBias, attentionOutputBias } = builder.config;
    return decoder(builder, (layer) => {
      layer.attention({
        qkvBias: attentionBias,
        outputBias: attentionOutputBias,
        norms: { before: "input_layernorm", after: "post_attention_layernorm" },
      });
      layer.gatedMlp({ norms: { before: "pre_feedforward_layernorm", after: "post_feedforward_layernorm" } });
    });
  },
};
