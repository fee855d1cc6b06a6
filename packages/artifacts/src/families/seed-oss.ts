import { llamaLayerNames } from "../gguf/names.js";
import { llamaProgram } from "../program/layers.js";
import type { ModelFamily } from "../program/model-family.js";

const { ffn_norm: _norm, ...layerNames } = llamaLayerNames;

/** Seed-OSS: Llama's layers with biases on q, k and v. */
export const seedOssFamily: ModelFamily = {
  architecture: "SeedOssForCausalLM",
  modelType: "seed_oss",
  defaults: {
    hiddenSize: 4_096,
    numLayers: 64,
    numHeads: 80,
    numKvHeads: 8,
    headDim: 128,
    intermediateSize: 27_648,
    vocabSize: 155_136,
    maxPositionEmbeddings: 524_288,
    bosTokenId: 0,
    eosTokenId: 2,
  },
  biases: { qkv: true, output: false, mlp: "config" },
  settings: (_, { attention_bias: qkv, attention_out_bias: output }) => ({
    attentionBias: qkv ?? true,
    attentionOutputBias: output ?? false,
  }),
  gguf: {
    architecture: "seed_oss",
    layerNames: { ...layerNames, post_attention_norm: "post_attention_layernorm" },
    ropeLayout: "neox",
    writing: { head: "own" },
  },
  plan: llamaProgram,
};
