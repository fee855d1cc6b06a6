import { llamaLayerNames } from "../gguf/names.js";
import { llamaProgram } from "../program/layers.js";
import type { ModelFamily } from "../program/model-family.js";

/** Llama 2 and 3.x (Touvron et al., arXiv 2307.09288; Llama 3, arXiv 2407.21783). */
export const llamaFamily: ModelFamily = {
  architecture: "LlamaForCausalLM",
  modelType: "llama",
  defaults: {
    hiddenSize: 4_096,
    numLayers: 32,
    numHeads: 32,
    intermediateSize: 11_008,
    vocabSize: 32_000,
    maxPositionEmbeddings: 2_048,
    bosTokenId: 1,
    eosTokenId: 2,
  },
  biases: { qkv: "config", output: "config", mlp: "config" },
  gguf: {
    architecture: "llama",
    layerNames: llamaLayerNames,
    ropeLayout: "interleaved",
    writing: { takesOutputBiases: true, takesRopeFactors: true },
  },
  plan: llamaProgram,
};
