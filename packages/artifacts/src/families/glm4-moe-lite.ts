import { groupsOf } from "../config/config-experts.js";
import { latentConfig } from "../config/latent-config.js";
import type { ModelFamily } from "../program/model-family.js";
import { artifactUnsupported } from "@octavo/text/files/artifact-file";
import { deepseekExpertNames, latentProgram } from "./deepseek-v3.js";

/** GLM-4.7-Flash: DeepSeek V3's layers in another size. Its GGUF files are of the architecture deepseek2. */
export const glm4MoeLiteFamily: ModelFamily = {
  architecture: "Glm4MoeLiteForCausalLM",
  modelType: "glm4_moe_lite",
  defaults: {
    hiddenSize: 2_048,
    numLayers: 47,
    numHeads: 20,
    headDim: 64,
    intermediateSize: 10_240,
    vocabSize: 154_880,
    maxPositionEmbeddings: 202_752,
    bosTokenId: 0,
    eosTokenId: 1,
    rmsNormEps: 1e-5,
    experts: {
      count: 64,
      perToken: 4,
      intermediateSize: 1_536,
      sharedIntermediateSize: 1_536,
      sharedSize: (config) => (config.n_shared_experts ?? 1) * (config.moe_intermediate_size ?? 1_536),
      normalizeWeights: { absent: true },
      numDenseLayers: (config) =>
        config.mlp_layer_types?.filter((type) => type === "dense").length ??
        config.first_k_dense_replace ??
        1,
      routing: (config) => ({
        scoring: "sigmoid",
        hasSelectionBias: true,
        weightScale: config.routed_scaling_factor ?? 1.8,
        ...groupsOf(config),
      }),
    },
  },
  biases: { qkv: "config", output: "config", mlp: false },
  settings: (path, config, rope) => {
    const { mlp_layer_types: types } = config;
    if (types && types.lastIndexOf("dense") > types.indexOf("sparse") && types.includes("sparse"))
      throw artifactUnsupported(path, "has a dense layer behind its first mixture");
    return latentConfig(path, config, rope, {
      kvRank: 512,
      queryRank: 768,
      plainDim: 192,
      rotatedDim: 64,
      valueDim: 256,
    });
  },
  expertNames: deepseekExpertNames,
  plan: latentProgram,
};
