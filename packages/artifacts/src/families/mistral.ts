import { llamaLayerNames } from "../gguf/names.js";
import { llamaProgram } from "../program/layers.js";
import type { ModelFamily } from "../program/model-family.js";

/**
 * Mistral 7B and its successors of the same shape (arXiv 2310.06825): Llama's layers, with a sliding window where the configuration
 * gives one. GGUF files of it are read as Llama.
 */
export const mistralFamily: ModelFamily = {
  architecture: "MistralForCausalLM",
  modelType: "mistral",
  defaults: {
    hiddenSize: 4_096,
    numLayers: 32,
    numHeads: 32,
    numKvHeads: 8,
    intermediateSize: 14_336,
    vocabSize: 32_000,
    maxPositionEmbeddings: 131_072,
    bosTokenId: 1,
    eosTokenId: 2,
  },
  biases: { qkv: false, output: false, mlp: false },
  hasWindow: () => true,
  gguf: {
    architecture: "llama",
    layerNames: llamaLayerNames,
    ropeLayout: "interleaved",
    writing: { takesOutputBiases: true, takesRopeFactors: true },
  },
  plan: llamaProgram,
};
