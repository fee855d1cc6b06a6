import { decoder } from "./layers.js";
import type { ModelFamily } from "./model-family.js";

/** Llama 2 and 3.x (Touvron et al., arXiv 2307.09288; Llama 3, arXiv 2407.21783). */
export const llama: ModelFamily = {
  architectures: ["LlamaForCausalLM"],
  plan: (builder) => {
    const { attentionBias, attentionOutputBias, mlpBias } = builder.config;
    return decoder(builder, (layer) => {
      layer.attention({ qkvBias: attentionBias, outputBias: attentionOutputBias });
      layer.gatedMlp({ bias: mlpBias });
    });
  },
};
