import { llamaLayerNames } from "../gguf/names.js";
import { decoder } from "../program/layers.js";
import type { ModelFamily } from "../program/model-family.js";
import { lateWindow, qwen2Family } from "./qwen2.js";

/** Qwen3, dense (arXiv 2505.09388): each head's q and k are normalised before rotation; the head size is its own setting. */
export const qwen3Family: ModelFamily = {
  architecture: "Qwen3ForCausalLM",
  modelType: "qwen3",
  defaults: {
    ...qwen2Family.defaults,
    headDim: 128,
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
