import { ggufExperts } from "../gguf/family-settings.js";
import { expertLayerNames, llamaLayerNames } from "../gguf/names.js";
import { u32 } from "../gguf/write-header.js";
import { decoder } from "../program/layers.js";
import { type ExpertNames, qwenExpertNames } from "../program/mixture-of-experts.js";
import type { ModelFamily } from "../program/model-family.js";
import type { ModelPlan } from "../program/model-plan.js";
import type { ProgramBuilder } from "../program/program-builder.js";

/** Qwen3-MoE (arXiv 2505.09388): Qwen3's attention, many small experts. */
export const qwen3MoeFamily: ModelFamily = {
  architecture: "Qwen3MoeForCausalLM",
  modelType: "qwen3_moe",
  defaults: {
    hiddenSize: 2_048,
    numLayers: 24,
    numHeads: 32,
    numKvHeads: 4,
    intermediateSize: 6_144,
    vocabSize: 151_936,
    maxPositionEmbeddings: 32_768,
    experts: { count: 128, perToken: 8, intermediateSize: 768, normalizeWeights: { absent: false } },
  },
  biases: { qkv: "config", output: "config", mlp: false },
  // Unlike Qwen3, whatever max_window_layers is (modeling_qwen3_moe.py).
  hasWindow: (_, config) => config.use_sliding_window === true,
  expertNames: qwenExpertNames,
  gguf: {
    architecture: "qwen3moe",
    layerNames: { ...llamaLayerNames, ...expertLayerNames(qwenExpertNames) },
    ropeLayout: "neox",
    settings: (values, base) => ggufExperts(values, base, { normalizeWeights: true, hasOwnSize: true }),
    writing: {
      metadata: ({ experts }) => ({ expert_feed_forward_length: u32(experts?.intermediateSize ?? 0) }),
    },
  },
  plan: (builder) => qwen3MoeProgram(builder, qwenExpertNames),
};

export function qwen3MoeProgram(builder: ProgramBuilder, names: ExpertNames): ModelPlan {
  const { experts } = builder.config;
  return decoder(builder, (layer, index) => {
    layer.attention({ queryKeyNorm: "head" });
    if (experts?.denseLayers[index] === true) layer.gatedMlp();
    else layer.experts(names);
  });
}
