import { ggufExperts } from "../gguf/family-settings.js";
import { expertLayerNames } from "../gguf/names.js";
import type { ExpertNames } from "../program/mixture-of-experts.js";
import type { ModelFamily } from "../program/model-family.js";
import { lfm2Defaults, lfm2Family, lfm2Gguf, lfm2LayerNames, lfm2Program, lfm2Settings } from "./lfm2.js";

const expertNames: ExpertNames = {
  router: "feed_forward.gate",
  expert: (index) => ({
    gate: `feed_forward.experts.${index}.w1`,
    up: `feed_forward.experts.${index}.w3`,
    down: `feed_forward.experts.${index}.w2`,
  }),
  fused: { gateUp: "feed_forward.experts.gate_up_proj", down: "feed_forward.experts.down_proj" },
  selectionBias: "feed_forward.expert_bias",
};

/** LFM2 with experts behind its first layers, chosen by biased sigmoids. */
export const lfm2MoeFamily: ModelFamily = {
  ...lfm2Family,
  architecture: "Lfm2MoeForCausalLM",
  modelType: "lfm2_moe",
  defaults: {
    ...lfm2Defaults,
    hiddenSize: 2_048,
    intermediateSize: 7_168,
    experts: {
      count: 32,
      perToken: 4,
      intermediateSize: 1_792,
      normalizeWeights: { absent: true },
      routing: (config) => ({
        scoring: "sigmoid",
        hasSelectionBias: config.use_expert_bias ?? true,
        weightScale: config.routed_scaling_factor ?? 1,
      }),
      numDenseLayers: (config) => config.num_dense_layers ?? 2,
    },
  },
  settings: lfm2Settings,
  expertNames,
  gguf: {
    architecture: "lfm2moe",
    layerNames: {
      ...lfm2LayerNames,
      ...expertLayerNames(expertNames),
      "=exp_probs_b.bias": "feed_forward.expert_bias",
    },
    ropeLayout: "neox",
    settings: (values, base) => ({
      ...lfm2Gguf(values, base),
      ...ggufExperts(values, base, {
        normalizeWeights: true,
        hasOwnSize: true,
        routing: { scoring: "sigmoid", hasSelectionBias: true },
      }),
    }),
  },
  plan: (builder) => lfm2Program(builder, expertNames),
};
