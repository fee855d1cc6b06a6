import { decoder } from "../program/layers.js";
import type { ModelFamily } from "../program/model-family.js";

/**
 * Llama 2 and 3.x (Touvron et al., arXiv 2307.09288; Llama 3, arXiv 2407.21783), and the families that differ from them by numbers
 * of the configuration alone: Granite 3 (scales of embeddings, residuals, scores and logits), SmolLM3 (layers without rotation).
 */
export const llama: ModelFamily = {
  architectures: ["LlamaForCausalLM", "GraniteForCausalLM", "SmolLM3ForCausalLM"],
  plan: (builder) => {
    const { attentionBias, attentionOutputBias, mlpBias } = builder.config;
    return decoder(builder, (layer) => {
      layer.attention({ qkvBias: attentionBias, outputBias: attentionOutputBias });
      layer.gatedMlp({ bias: mlpBias });
    });
  },
};
