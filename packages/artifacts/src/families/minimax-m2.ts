import { ggufExperts } from "../gguf/family-settings.js";
import { expertLayerNames, llamaLayerNames } from "../gguf/names.js";
import { decoder } from "../program/layers.js";
import type { ExpertNames } from "../program/mixture-of-experts.js";
import type { ExpertRouting, ModelFamily } from "../program/model-family.js";

const expertNames: ExpertNames = {
  router: "block_sparse_moe.gate",
  expert: (index) => ({
    gate: `block_sparse_moe.experts.${index}.w1`,
    up: `block_sparse_moe.experts.${index}.w3`,
    down: `block_sparse_moe.experts.${index}.w2`,
  }),
  fused: { gateUp: "mlp.experts.gate_up_proj", down: "mlp.experts.down_proj" },
  selectionBias: "block_sparse_moe.e_score_correction_bias",
};

const routing: ExpertRouting = { scoring: "sigmoid", hasSelectionBias: true };

/** MiniMax M2: half-rotated heads with norms over all of q and of k; every layer a mixture chosen by biased sigmoids. */
export const miniMaxM2Family: ModelFamily = {
  architecture: "MiniMaxM2ForCausalLM",
  modelType: "minimax_m2",
  defaults: {
    hiddenSize: 3_072,
    numLayers: 62,
    numHeads: 48,
    numKvHeads: 8,
    headDim: 128,
    intermediateSize: 1_536,
    vocabSize: 200_064,
    maxPositionEmbeddings: 196_608,
    ropeTheta: 5_000_000,
    bosTokenId: 200_034,
    eosTokenId: 200_020,
    experts: { count: 256, perToken: 8, normalizeWeights: true, routing: () => routing },
  },
  biases: { qkv: false, output: false, mlp: false },
  // Published files give the rotated part as such.
  settings: (_, config, rope) => ({ rope: { ...rope, rotaryDim: config.rotary_dim ?? rope.rotaryDim } }),
  expertNames,
  gguf: {
    architecture: "minimax-m2",
    layerNames: {
      ...llamaLayerNames,
      ...expertLayerNames(expertNames),
      "=exp_probs_b.bias": "block_sparse_moe.e_score_correction_bias",
    },
    ropeLayout: "neox",
    settings: (values, base) =>
      ggufExperts(values, base, { normalizeWeights: true, hasOwnSize: true, routing }),
  },
  plan: (builder) =>
    decoder(builder, (layer) => {
      layer.attention({ queryKeyNorm: "whole" });
      layer.experts(expertNames);
    }),
};
