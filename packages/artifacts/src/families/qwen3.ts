import { llamaLayerNames } from "../gguf/names.js";
import { decoder } from "../program/layers.js";
import type { ModelFamily } from "../program/model-family.js";
import { lateWindow } from "./qwen2.js";

/** Qwen3, dense (arXiv 2505.09388): each head's q and k are normalised before rotation; the head size is its own setting. */
export const qwen3: ModelFamily = {
  architecture: "Qwen3ForCausalLM",
  modelType: "qwen3",
  defaults: {
    hiddenSize: 4_096,
    numLayers: 32,
    numHeads: 32,
    numKvHeads: 32,
    headDim: 128,
    intermediateSize: 22_016,
    vocabSize: 151_936,
    maxPositionEmbeddings: 32_768,
  },
  biases: { qkv: "config", output: "config", mlp: false },
  hasWindow: lateWindow,
  gguf: { architecture: "qwen3", layerNames: llamaLayerNames, ropeLayout: "neox", writing: {} },
  plan: (builder) =>
    decoder(builder, (layer) => {
      layer.attention({ queryKeyNorm: "head" });
      layer.gatedMlp();
    }),
};
