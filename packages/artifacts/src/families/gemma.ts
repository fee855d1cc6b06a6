import { llamaLayerNames } from "../gguf/names.js";
import { llamaProgram } from "../program/layers.js";
import type { ModelFamily } from "../program/model-family.js";
import { gemmaGgufSettings } from "./gemma2.js";

/** Gemma (arXiv 2403.08295): Llama's layers with GELU, embeddings times sqrt(hidden size), norms that multiply by 1 + weight. */
export const gemmaFamily: ModelFamily = {
  architecture: "GemmaForCausalLM",
  modelType: "gemma",
  defaults: {
    hiddenSize: 3_072,
    numLayers: 28,
    numHeads: 16,
    numKvHeads: 16,
    headDim: 256,
    intermediateSize: 24_576,
    vocabSize: 256_000,
    maxPositionEmbeddings: 8_192,
    bosTokenId: 2,
    eosTokenId: 1,
    tieWordEmbeddings: true,
  },
  biases: { qkv: "config", output: "config", mlp: false },
  settings: (_, config) => ({
    // Published configs say "gelu" and mean its approximation (configuration_gemma.py).
    hiddenActivation: "gelu_tanh",
    normWeightOffset: 1,
    embeddingScale: Math.sqrt(config.hidden_size ?? 3_072),
  }),
  gguf: {
    architecture: "gemma",
    layerNames: llamaLayerNames,
    ropeLayout: "neox",
    settings: (_, base) => gemmaGgufSettings(base),
    writing: { head: "embedding" },
  },
  plan: llamaProgram,
};
