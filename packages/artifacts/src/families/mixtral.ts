import { ggufExperts } from "../gguf/family-settings.js";
import { expertLayerNames, llamaLayerNames } from "../gguf/names.js";
import { decoder } from "../program/layers.js";
import type { ExpertNames } from "../program/mixture-of-experts.js";
import type { ModelFamily } from "../program/model-family.js";
import { mistralFamily } from "./mistral.js";

const expertNames: ExpertNames = {
  router: "block_sparse_moe.gate",
  expert: (index) => ({
    gate: `block_sparse_moe.experts.${index}.w1`,
    up: `block_sparse_moe.experts.${index}.w3`,
    down: `block_sparse_moe.experts.${index}.w2`,
  }),
  fused: { gateUp: "mlp.experts.gate_up_proj", down: "mlp.experts.down_proj" },
};

/** Mixtral (arXiv 2401.04088): Mistral's attention, eight experts of which each token takes two. */
export const mixtralFamily: ModelFamily = {
  architecture: "MixtralForCausalLM",
  modelType: "mixtral",
  defaults: {
    ...mistralFamily.defaults,
    ropeTheta: 1_000_000,
    rmsNormEps: 1e-5,
    slidingWindow: null,
    experts: { count: 8, perToken: 2, normalizeWeights: true },
  },
  biases: { qkv: false, output: false, mlp: false },
  hasWindow: () => true,
  expertNames,
  gguf: {
    architecture: "llama",
    recognises: (values) => (values.number("expert_count") ?? 0) > 0,
    layerNames: { ...llamaLayerNames, ...expertLayerNames(expertNames) },
    ropeLayout: "interleaved",
    settings: (values, base) => ggufExperts(values, base, { normalizeWeights: true }),
    writing: { takesRopeFactors: true },
  },
  plan: (builder) =>
    decoder(builder, (layer) => {
      layer.attention();
      layer.experts(expertNames);
    }),
};
