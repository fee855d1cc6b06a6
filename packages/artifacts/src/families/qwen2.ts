import type { ConfigJson } from "../config/config-schema.js";
import { llamaLayerNames } from "../gguf/names.js";
import { decoder } from "../program/layers.js";
import type { ModelFamily } from "../program/model-family.js";

/** Qwen2 and Qwen2.5 (arXiv 2407.10671): q, k and v have a bias, the output projection has none. */
export const qwen2Family: ModelFamily = {
  architecture: "Qwen2ForCausalLM",
  modelType: "qwen2",
  defaults: {
    hiddenSize: 4_096,
    numLayers: 32,
    numHeads: 32,
    numKvHeads: 32,
    intermediateSize: 22_016,
    vocabSize: 151_936,
    maxPositionEmbeddings: 32_768,
  },
  biases: { qkv: true, output: false, mlp: false },
  hasWindow: lateWindow,
  gguf: {
    architecture: "qwen2",
    layerNames: llamaLayerNames,
    ropeLayout: "neox",
    writing: { hasWholeHeads: true },
  },
  plan: (builder) =>
    decoder(builder, (layer) => {
      layer.attention({ qkvBias: true });
      layer.gatedMlp();
    }),
};

/** Under `use_sliding_window`, layers from `max_window_layers` on. */
export function lateWindow(layer: number, config: ConfigJson): boolean {
  return config.use_sliding_window === true && layer >= (config.max_window_layers ?? 28);
}
