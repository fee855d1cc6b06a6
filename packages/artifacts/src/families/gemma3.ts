import { decoder } from "../program/layers.js";
import type { ModelFamily } from "../program/model-family.js";

/**
 * Gemma 3, text (arXiv 2503.19786): Gemma 2's layers with each head's q and k normalised, five layers of six with a sliding window
 * and a rotation of their own.
 */
export const gemma3: ModelFamily = {
  architectures: ["Gemma3ForCausalLM"],
  plan: (builder) => {
    const { attentionBias, attentionOutputBias } = builder.config;
    return decoder(builder, (layer) => {
      layer.attention({
        qkvBias: attentionBias,
        outputBias: attentionOutputBias,
        queryKeyNorm: "head",
        norms: { before: "input_layernorm", after: "post_attention_layernorm" },
      });
      layer.gatedMlp({ norms: { before: "pre_feedforward_layernorm", after: "post_feedforward_layernorm" } });
    });
  },
};
