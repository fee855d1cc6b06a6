import { decoder } from "../program/layers.js";
import type { ExpertNames } from "../program/mixture-of-experts.js";
import type { ModelFamily } from "../program/model-family.js";

const names: ExpertNames = {
  router: "block_sparse_moe.gate",
  expert: (index) => ({
    gate: `block_sparse_moe.experts.${index}.w1`,
    up: `block_sparse_moe.experts.${index}.w3`,
    down: `block_sparse_moe.experts.${index}.w2`,
  }),
  fused: { gateUp: "mlp.experts.gate_up_proj", down: "mlp.experts.down_proj" },
};

/** Mixtral (arXiv 2401.04088): Mistral's attention, eight experts of which each token takes two. */
export const mixtral: ModelFamily = {
  architectures: ["MixtralForCausalLM"],
  plan: (builder) =>
    decoder(builder, (layer) => {
      layer.attention();
      layer.experts(names);
    }),
};
