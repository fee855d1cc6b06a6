import { decoder } from "../program/layers.js";
import type { ModelFamily } from "../program/model-family.js";

/** Qwen2 and Qwen2.5 (arXiv 2407.10671): q, k and v have a bias, the output projection has none. */
export const qwen2: ModelFamily = {
  architectures: ["Qwen2ForCausalLM"],
  plan: (builder) =>
    decoder(builder, (layer) => {
      layer.attention({ qkvBias: true });
      layer.gatedMlp();
    }),
};
