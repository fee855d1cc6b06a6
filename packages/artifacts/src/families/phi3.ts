import { decoder } from "../program/layers.js";
import type { ModelFamily } from "../program/model-family.js";

/** Phi-3 (arXiv 2404.14219), Phi-4 and Phi-4-mini: Llama's layers with q, k, v in one tensor and gate, up in another. */
export const phi3: ModelFamily = {
  architectures: ["Phi3ForCausalLM"],
  plan: (builder) =>
    decoder(builder, (layer) => {
      layer.attention({ fused: true });
      layer.gatedMlp({ fused: true });
    }),
};
