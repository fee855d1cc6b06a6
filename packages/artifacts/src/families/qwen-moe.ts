import { decoder } from "../program/layers.js";
import { type ExpertNames, qwenExpertNames } from "../program/mixture-of-experts.js";
import type { ModelFamily } from "../program/model-family.js";

const withShared: ExpertNames = {
  ...qwenExpertNames,
  shared: { mlp: "mlp.shared_expert", gate: "mlp.shared_expert_gate" },
};

/** Qwen1.5-MoE and Qwen2-MoE (arXiv 2407.10671): Qwen2's attention; small experts beside one that every token goes to. */
export const qwen2Moe: ModelFamily = {
  architectures: ["Qwen2MoeForCausalLM"],
  plan: (builder) => {
    const { attentionBias, experts } = builder.config;
    return decoder(builder, (layer, index) => {
      layer.attention({ qkvBias: attentionBias });
      if (experts?.denseLayers[index] === true) layer.gatedMlp();
      else layer.experts(withShared);
    });
  },
};

/** Qwen3-MoE (arXiv 2505.09388): Qwen3's attention, many small experts. */
export const qwen3Moe: ModelFamily = {
  architectures: ["Qwen3MoeForCausalLM"],
  plan: (builder) => {
    const { attentionBias, attentionOutputBias, experts } = builder.config;
    return decoder(builder, (layer, index) => {
      layer.attention({ qkvBias: attentionBias, outputBias: attentionOutputBias, queryKeyNorm: "head" });
      if (experts?.denseLayers[index] === true) layer.gatedMlp();
      else layer.experts(qwenExpertNames);
    });
  },
};
