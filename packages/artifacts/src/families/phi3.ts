import { phi3LayerNames } from "../gguf/names.js";
import { u32 } from "../gguf/write-header.js";
import { decoder } from "../program/layers.js";
import type { ModelFamily } from "../program/model-family.js";

/** Phi-3 (arXiv 2404.14219), Phi-4 and Phi-4-mini: Llama's layers with q, k, v in one tensor and gate, up in another. */
export const phi3Family: ModelFamily = {
  architecture: "Phi3ForCausalLM",
  modelType: "phi3",
  defaults: {
    hiddenSize: 3_072,
    numLayers: 32,
    numHeads: 32,
    intermediateSize: 8_192,
    vocabSize: 32_064,
    maxPositionEmbeddings: 4_096,
    bosTokenId: 1,
    eosTokenId: 32_000,
    rmsNormEps: 1e-5,
    slidingWindow: null,
  },
  biases: { qkv: false, output: false, mlp: false },
  hasWindow: () => true,
  gguf: {
    architecture: "phi3",
    layerNames: phi3LayerNames,
    ropeLayout: "neox",
    writing: {
      hasWholeHeads: true,
      takesRopeFactors: true,
      // By the 0, llama.cpp tells Phi-4 from older models of the architecture.
      metadata: ({ slidingWindows }) =>
        slidingWindows.some((window) => window !== undefined) ? {} : { "attention.sliding_window": u32(0) },
    },
  },
  plan: (builder) =>
    decoder(builder, (layer) => {
      layer.attention({ isFused: true });
      layer.gatedMlp({ isFused: true });
    }),
};
