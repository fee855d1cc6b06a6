import { ggufExperts } from "../gguf/family-settings.js";
import { expertLayerNames, llamaLayerNames } from "../gguf/names.js";
import { u32 } from "../gguf/write-header.js";
import { decoder } from "../program/layers.js";
import { gatedSharedExpertNames as expertNames } from "../program/mixture-of-experts.js";
import type { ModelFamily } from "../program/model-family.js";

/** Qwen1.5-MoE and Qwen2-MoE (arXiv 2407.10671): Qwen2's attention; small experts beside one that every token goes to. */
export const qwen2MoeFamily: ModelFamily = {
  architecture: "Qwen2MoeForCausalLM",
  modelType: "qwen2_moe",
  defaults: {
    hiddenSize: 2_048,
    numLayers: 24,
    numHeads: 16,
    numKvHeads: 16,
    intermediateSize: 5_632,
    vocabSize: 151_936,
    maxPositionEmbeddings: 32_768,
    experts: {
      count: 60,
      perToken: 4,
      intermediateSize: 1_408,
      sharedIntermediateSize: 5_632,
      normalizeWeights: { absent: false },
    },
  },
  biases: { qkv: true, output: false, mlp: false },
  hasWindow: (layer, config) =>
    config.use_sliding_window === true && layer % 2 === 0 && layer < (config.max_window_layers ?? 28),
  settings: (_, config) => ({ attentionBias: config.qkv_bias ?? true }),
  expertNames,
  gguf: {
    architecture: "qwen2moe",
    layerNames: { ...llamaLayerNames, ...expertLayerNames(expertNames) },
    ropeLayout: "neox",
    settings: (values, base) =>
      ggufExperts(values, base, { normalizeWeights: false, hasOwnSize: true, isShared: true }),
    writing: {
      head: "own",
      hasWholeHeads: true,
      metadata: ({ experts }) => ({ expert_feed_forward_length: u32(experts?.intermediateSize ?? 0) }),
    },
  },
  plan: (builder) => {
    const { experts } = builder.config;
    return decoder(builder, (layer, index) => {
      layer.attention();
      if (experts?.denseLayers[index] === true) layer.gatedMlp();
      else layer.experts(expertNames);
    });
  },
};
