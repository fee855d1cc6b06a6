import { llamaLayerNames } from "../gguf/names.js";
import { llamaProgram } from "../program/layers.js";
import type { ModelFamily } from "../program/model-family.js";

/** ERNIE 4.5, dense: Llama's layers with a rotation of neighbouring pairs. */
export const ernie45Family: ModelFamily = {
  architecture: "Ernie4_5ForCausalLM",
  modelType: "ernie4_5",
  defaults: {
    hiddenSize: 1_024,
    numLayers: 18,
    numHeads: 16,
    numKvHeads: 2,
    headDim: 128,
    intermediateSize: 3_072,
    vocabSize: 103_424,
    maxPositionEmbeddings: 131_072,
    bosTokenId: 1,
    eosTokenId: 2,
    ropeTheta: 500_000,
    rmsNormEps: 1e-5,
    tieWordEmbeddings: true,
  },
  biases: { qkv: false, output: false, mlp: false },
  settings: (_, { use_bias: bias }, rope) => ({
    attentionBias: bias ?? false,
    attentionOutputBias: bias ?? false,
    mlpBias: bias ?? false,
    rope: { ...rope, layout: "interleaved" },
  }),
  gguf: {
    architecture: "ernie4_5",
    layerNames: llamaLayerNames,
    ropeLayout: "interleaved",
    isInterleavedAsTrained: true,
    writing: { takesOutputBiases: true },
  },
  plan: llamaProgram,
};
