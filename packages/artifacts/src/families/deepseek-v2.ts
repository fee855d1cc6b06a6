import { artifactUnsupported } from "@octavo/text/files/artifact-file";
import { latentConfig } from "../config/latent-config.js";
import { deepseekExpertNames, deepseekLatentSizes, latentProgram } from "./deepseek-v3.js";
import type { ModelFamily } from "../program/model-family.js";

/** DeepSeek V2 and V2-Lite: latent attention, and experts chosen by a softmax. Their GGUF files are read as DeepSeek V3's. */
export const deepseekV2Family: ModelFamily = {
  architecture: "DeepseekV2ForCausalLM",
  modelType: "deepseek_v2",
  defaults: {
    hiddenSize: 4_096,
    numLayers: 32,
    numHeads: 32,
    headDim: 64,
    intermediateSize: 11_008,
    vocabSize: 102_400,
    maxPositionEmbeddings: 2_048,
    bosTokenId: 1,
    eosTokenId: 2,
    experts: {
      count: 64,
      perToken: 6,
      intermediateSize: 1_407,
      sharedIntermediateSize: 2_814,
      sharedSize: (config) => (config.n_shared_experts ?? 2) * (config.moe_intermediate_size ?? 1_407),
      // transformers' class leaves norm_topk_prob aside.
      normalizeWeights: false,
      numDenseLayers: (config) => config.first_k_dense_replace ?? 0,
      routing: ({
        topk_method: method,
        n_group: count,
        topk_group: chosen,
        routed_scaling_factor: scale,
      }) => ({
        weightScale: scale ?? 1,
        ...(method === "group_limited_greedy" &&
          (count ?? 1) > 1 && { groups: { count: count ?? 1, chosen: chosen ?? 1, by: "best" } }),
      }),
    },
  },
  biases: { qkv: "config", output: "config", mlp: "config" },
  settings: (path, config, rope) => {
    const { topk_method: method } = config;
    if (method && method !== "greedy" && method !== "group_limited_greedy")
      throw artifactUnsupported(path, `has the topk_method ${JSON.stringify(method.slice(0, 100))}`);
    return latentConfig(path, config, rope, deepseekLatentSizes);
  },
  expertNames: deepseekExpertNames,
  plan: latentProgram,
};
