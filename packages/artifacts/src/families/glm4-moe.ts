import { ggufExperts } from "../gguf/family-settings.js";
import { expertLayerNames, llamaLayerNames } from "../gguf/names.js";
import { decoder } from "../program/layers.js";
import { type ExpertNames, qwenExpertNames } from "../program/mixture-of-experts.js";
import type { ExpertRouting, ModelFamily } from "../program/model-family.js";
import { groupsOf } from "../config/config-experts.js";

const expertNames: ExpertNames = {
  ...qwenExpertNames,
  selectionBias: "mlp.gate.e_score_correction_bias",
  shared: { mlp: "mlp.shared_experts" },
};

const routing: ExpertRouting = { scoring: "sigmoid", hasSelectionBias: true };

/** GLM-4.5 to 4.7: half-rotated heads, experts chosen by biased sigmoids behind the first layers. */
export const glm4MoeFamily: ModelFamily = {
  architecture: "Glm4MoeForCausalLM",
  modelType: "glm4_moe",
  defaults: {
    hiddenSize: 4_096,
    numLayers: 46,
    numHeads: 96,
    numKvHeads: 8,
    intermediateSize: 10_944,
    vocabSize: 151_552,
    maxPositionEmbeddings: 131_072,
    rmsNormEps: 1e-5,
    partialRotaryFactor: 0.5,
    experts: {
      count: 128,
      perToken: 8,
      intermediateSize: 1_408,
      sharedIntermediateSize: 1_408,
      sharedSize: (config) => (config.n_shared_experts ?? 1) * (config.moe_intermediate_size ?? 1_408),
      normalizeWeights: { absent: true },
      numDenseLayers: (config) => config.first_k_dense_replace ?? 1,
      routing: (config) => ({
        ...routing,
        weightScale: config.routed_scaling_factor ?? 1,
        ...groupsOf(config),
      }),
    },
  },
  biases: { qkv: "config", output: false, mlp: false },
  settings: (_, config) => ({ hasQueryKeyNorm: config.use_qk_norm ?? false }),
  expertNames,
  gguf: {
    architecture: "glm4moe",
    layerNames: {
      ...llamaLayerNames,
      ...expertLayerNames(expertNames),
      post_attention_norm: "post_attention_layernorm",
      "=exp_probs_b.bias": "mlp.gate.e_score_correction_bias",
    },
    ropeLayout: "neox",
    settings: (values, base) => {
      // Layers that predict further tokens stand behind the model's own.
      const numLayers = base.numLayers - (values.number("nextn_predict_layers") ?? 0);
      const size = values.number("expert_feed_forward_length") ?? base.intermediateSize;
      const { experts } = ggufExperts(
        values,
        { ...base, numLayers },
        { normalizeWeights: true, hasOwnSize: true, isShared: true, routing },
      );
      const sharedIntermediateSize = (values.number("expert_shared_count") ?? 1) * size;
      return {
        numLayers,
        slidingWindows: Array.from({ length: Math.min(numLayers, 1_024) }, () => undefined),
        experts: { ...experts, sharedIntermediateSize },
      };
    },
  },
  plan: (builder) => {
    const { experts, hasQueryKeyNorm } = builder.config;
    // GGUF files do not say.
    const isNormed = hasQueryKeyNorm ?? builder.has("model.layers.0.self_attn.q_norm.weight");
    return decoder(builder, (layer, index) => {
      layer.attention({ queryKeyNorm: isNormed ? "head" : undefined });
      if (experts?.denseLayers[index] === true) layer.gatedMlp();
      else layer.experts(expertNames);
    });
  },
};
