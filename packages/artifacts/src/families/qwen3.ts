import { decoder } from "../program/layers.js";
import type { ModelFamily } from "../program/model-family.js";

/** Qwen3, dense (arXiv 2505.09388): each head's q and k are normalised before rotation; the head size is its own setting. */
export const qwen3: ModelFamily = {
  architectures: ["Qwen3ForCausalLM"],
  plan: (builder) => {
    const { attentionBias, attentionOutputBias } = builder.config;
    return decoder(builder, (layer) => {
      layer.attention({ qkvBias: attentionBias, outputBias: attentionOutputBias, queryKeyNorm: "head" });
      layer.gatedMlp();
    });
  },
};
