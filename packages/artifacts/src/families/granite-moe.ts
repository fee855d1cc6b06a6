import { decoder } from "../program/layers.js";
import type { ExpertNames } from "../program/mixture-of-experts.js";
import type { ModelFamily } from "../program/model-family.js";

const names: ExpertNames = {
  router: "block_sparse_moe.router.layer",
  expert: (index) => ({
    gate: `block_sparse_moe.experts.${index}.gate_proj`,
    up: `block_sparse_moe.experts.${index}.up_proj`,
    down: `block_sparse_moe.experts.${index}.down_proj`,
  }),
  fused: { gateUp: "block_sparse_moe.input_linear.weight", down: "block_sparse_moe.output_linear.weight" },
};

/** Granite 3 MoE: Granite's scales of embeddings, residuals, scores and logits; all experts of a layer in two tensors. */
export const graniteMoe: ModelFamily = {
  architectures: ["GraniteMoeForCausalLM"],
  plan: (builder) => {
    const { attentionBias, attentionOutputBias } = builder.config;
    return decoder(builder, (layer) => {
      layer.attention({ qkvBias: attentionBias, outputBias: attentionOutputBias });
      layer.experts(names);
    });
  },
};
