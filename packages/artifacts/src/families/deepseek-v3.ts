import { groupsOf } from "../config/config-experts.js";
import { ggufExperts } from "../gguf/family-settings.js";
import { expertLayerNames, llamaLayerNames, type LayerNames } from "../gguf/names.js";
import { ggufLatent, latentConfig } from "../config/latent-config.js";
import { latentAttention } from "../program/latent-attention.js";
import { decoder } from "../program/layers.js";
import { type ExpertNames, qwenExpertNames } from "../program/mixture-of-experts.js";
import type { ExpertRouting, ModelFamily } from "../program/model-family.js";
import type { ModelPlan } from "../program/model-plan.js";
import type { ProgramBuilder } from "../program/program-builder.js";

export const deepseekExpertNames: ExpertNames = {
  ...qwenExpertNames,
  selectionBias: "mlp.gate.e_score_correction_bias",
  shared: { mlp: "mlp.shared_experts" },
};

const routing: ExpertRouting = { scoring: "sigmoid", hasSelectionBias: true };

export const deepseekLayerNames: LayerNames = {
  ...llamaLayerNames,
  ...expertLayerNames(deepseekExpertNames),
  attn_q_a: "self_attn.q_a_proj",
  attn_q_a_norm: "self_attn.q_a_layernorm",
  attn_q_b: "self_attn.q_b_proj",
  attn_kv_a_mqa: "self_attn.kv_a_proj_with_mqa",
  attn_kv_a_norm: "self_attn.kv_a_layernorm",
  attn_kv_b: "self_attn.kv_b_proj",
  attn_k_b: "self_attn.k_b_proj",
  attn_v_b: "self_attn.v_b_proj",
  "=exp_probs_b.bias": "mlp.gate.e_score_correction_bias",
};

/** Sizes of latent attention that both generations' config classes assume. */
export const deepseekLatentSizes = {
  kvRank: 512,
  queryRank: 1_536,
  plainDim: 128,
  rotatedDim: 64,
  valueDim: 128,
} as const;

/** DeepSeek V3 and R1, and Kimi K2, which has the same layers: latent attention, and experts chosen by biased sigmoids within groups. */
export const deepseekV3Family: ModelFamily = {
  architecture: "DeepseekV3ForCausalLM",
  modelType: "deepseek_v3",
  otherModelTypes: ["kimi_k2"],
  defaults: {
    hiddenSize: 7_168,
    numLayers: 61,
    numHeads: 128,
    headDim: 64,
    intermediateSize: 18_432,
    vocabSize: 129_280,
    maxPositionEmbeddings: 4_096,
    bosTokenId: 0,
    eosTokenId: 1,
    experts: {
      count: 256,
      perToken: 8,
      intermediateSize: 2_048,
      sharedIntermediateSize: 2_048,
      sharedSize: (config) => (config.n_shared_experts ?? 1) * (config.moe_intermediate_size ?? 2_048),
      normalizeWeights: { absent: true },
      numDenseLayers: (config) => config.first_k_dense_replace ?? 3,
      routing: (config) => ({
        ...routing,
        weightScale: config.routed_scaling_factor ?? 2.5,
        ...groupsOf({ ...config, n_group: config.n_group ?? 8, topk_group: config.topk_group ?? 4 }),
      }),
    },
  },
  biases: { qkv: "config", output: "config", mlp: false },
  settings: (path, config, rope) => latentConfig(path, config, rope, deepseekLatentSizes),
  expertNames: deepseekExpertNames,
  gguf: {
    architecture: "deepseek2",
    layerNames: deepseekLayerNames,
    ropeLayout: "interleaved",
    isInterleavedAsTrained: true,
    settings: (values, base) => {
      const size = values.number("expert_feed_forward_length") ?? base.intermediateSize;
      const latent = ggufLatent(values, base);
      if ((values.number("expert_count") ?? 0) === 0) return latent;
      const { experts } = ggufExperts(
        values,
        { ...base, ...latent },
        { normalizeWeights: false, hasOwnSize: true, isShared: true, routing: {} },
      );
      const [count, chosen] = [values.number("expert_group_count"), values.number("expert_group_used_count")];
      const isSigmoid = experts.scoring === "sigmoid";
      return {
        ...latent,
        experts: {
          ...experts,
          sharedIntermediateSize: (values.number("expert_shared_count") ?? 1) * size,
          ...(isSigmoid && { hasSelectionBias: true }),
          ...((count ?? 1) > 1 && {
            groups: { count: count ?? 1, chosen: chosen ?? 1, by: "two_best" },
          }),
        },
      };
    },
  },
  plan: latentProgram,
};

/** Latent attention, then an MLP or a mixture. */
export function latentProgram(builder: ProgramBuilder): ModelPlan {
  const mix = latentAttention(builder);
  const { experts } = builder.config;
  return decoder(builder, (layer, index) => {
    layer.mixer(mix);
    if (experts === undefined || experts.denseLayers[index] === true) layer.gatedMlp();
    else layer.experts(deepseekExpertNames);
  });
}
