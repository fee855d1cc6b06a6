import { ggufExperts } from "../gguf/family-settings.js";
import { expertLayerNames, llamaLayerNames } from "../gguf/names.js";
import { decoder } from "../program/layers.js";
import type { ExpertNames } from "../program/mixture-of-experts.js";
import type { ModelFamily } from "../program/model-family.js";
import { graniteGgufScales } from "./granite.js";
import { graniteExpertNames, graniteMoeFamily } from "./granite-moe.js";

const expertNames: ExpertNames = {
  ...graniteExpertNames,
  shared: { mlp: "shared_mlp", fused: { gateUp: "input_linear", down: "output_linear" } },
};

/** Granite 3 MoE with an expert that every token goes to. */
export const graniteMoeSharedFamily: ModelFamily = {
  ...graniteMoeFamily,
  architecture: "GraniteMoeSharedForCausalLM",
  modelType: "granitemoeshared",
  defaults: {
    ...graniteMoeFamily.defaults,
    experts: { count: 8, perToken: 2, normalizeWeights: true, sharedIntermediateSize: 0 },
  },
  expertNames,
  gguf: {
    architecture: "granitemoe",
    recognises: (values) => (values.number("expert_shared_feed_forward_length") ?? 0) > 0,
    layerNames: { ...llamaLayerNames, ...expertLayerNames(expertNames) },
    ropeLayout: "interleaved",
    settings: (values, base) => ({
      ...graniteGgufScales(values, base),
      ...ggufExperts(values, base, { normalizeWeights: true, isShared: true }),
    }),
  },
  plan: (builder) =>
    decoder(builder, (layer) => {
      layer.attention();
      layer.experts(expertNames);
    }),
};
