import { decoder } from "../program/layers.js";
import type { ModelFamily } from "../program/model-family.js";

/** Mistral 7B and its successors of the same shape (arXiv 2310.06825): Llama's layers, with a sliding window where the configuration gives one. */
export const mistral: ModelFamily = {
  architectures: ["MistralForCausalLM"],
  plan: (builder) =>
    decoder(builder, (layer) => {
      layer.attention();
      layer.gatedMlp();
    }),
};
