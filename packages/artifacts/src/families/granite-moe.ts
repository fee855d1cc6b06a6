import { ggufExperts } from "../gguf/family-settings.js";
import { expertLayerNames, llamaLayerNames } from "../gguf/names.js";
import { decoder } from "../program/layers.js";
import type { ExpertNames } from "../program/mixture-of-experts.js";
import type { ModelFamily } from "../program/model-family.js";
import { graniteGgufMetadata, graniteGgufScales, graniteScales } from "./granite.js";
import { llamaFamily } from "./llama.js";

export const graniteExpertNames: ExpertNames = {
  router: "block_sparse_moe.router.layer",
  expert: (index) => ({
    gate: `block_sparse_moe.experts.${index}.gate_proj`,
    up: `block_sparse_moe.experts.${index}.up_proj`,
    down: `block_sparse_moe.experts.${index}.down_proj`,
  }),
  fused: { gateUp: "block_sparse_moe.input_linear.weight", down: "block_sparse_moe.output_linear.weight" },
};

/** Granite 3 MoE: Granite's scales of embeddings, residuals, scores and logits; all experts of a layer in two tensors. */
export const graniteMoeFamily: ModelFamily = {
  architecture: "GraniteMoeForCausalLM",
  modelType: "granitemoe",
  defaults: {
    ...llamaFamily.defaults,
    experts: { count: 8, perToken: 2, normalizeWeights: true },
  },
  biases: { qkv: "config", output: "config", mlp: false },
  settings: graniteScales,
  expertNames: graniteExpertNames,
  gguf: {
    architecture: "granitemoe",
    layerNames: { ...llamaLayerNames, ...expertLayerNames(graniteExpertNames) },
    ropeLayout: "interleaved",
    settings: (values, base) => ({
      ...graniteGgufScales(values, base),
      ...ggufExperts(values, base, { normalizeWeights: true }),
    }),
    writing: { takesOutputBiases: true, takesRopeFactors: true, metadata: graniteGgufMetadata },
  },
  plan: (builder) =>
    decoder(builder, (layer) => {
      layer.attention();
      layer.experts(graniteExpertNames);
    }),
};
