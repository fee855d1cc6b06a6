import { type ExpertNames, qwenExpertNames } from "../program/mixture-of-experts.js";
import type { ModelFamily } from "../program/model-family.js";
import { qwen3MoeFamily, qwen3MoeProgram } from "./qwen3-moe.js";

const expertNames: ExpertNames = {
  ...qwenExpertNames,
  fused: { ...qwenExpertNames.fused, transposed: "gate_first" },
};

/** The text of Qwen3-VL as a mixture: Qwen3-MoE's layers, whose experts' weights stand transposed and always add up to 1. */
export const qwen3VlMoeFamily: ModelFamily = {
  architecture: "Qwen3VLMoeForCausalLM",
  modelType: "qwen3_vl_moe_text",
  defaults: {
    hiddenSize: 2_048,
    numLayers: 24,
    numHeads: 16,
    intermediateSize: 5_632,
    vocabSize: 151_936,
    maxPositionEmbeddings: 128_000,
    ropeTheta: 500_000,
    experts: { count: 60, perToken: 4, intermediateSize: 1_408, normalizeWeights: true },
  },
  biases: qwen3MoeFamily.biases,
  expertNames,
  plan: (builder) => qwen3MoeProgram(builder, expertNames),
};
