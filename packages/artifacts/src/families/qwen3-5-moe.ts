import { ggufExperts } from "../gguf/family-settings.js";
import { expertLayerNames } from "../gguf/names.js";
import { gatedSharedExpertNames } from "../program/mixture-of-experts.js";
import type { ModelFamily } from "../program/model-family.js";
import { gatedDeltaGguf, qwen35Defaults, qwen35Family, qwen35LayerNames } from "./qwen3-5.js";

/** Qwen3.5 and 3.6 as mixtures of experts, one of which every token goes to. */
export const qwen35MoeFamily: ModelFamily = {
  ...qwen35Family,
  architecture: "Qwen3_5MoeForCausalLM",
  modelType: "qwen3_5_moe_text",
  defaults: {
    ...qwen35Defaults,
    hiddenSize: 2_048,
    numLayers: 40,
    numKvHeads: 2,
    // Not in config.json: no layer has a plain MLP.
    intermediateSize: 512,
    experts: {
      count: 256,
      perToken: 8,
      intermediateSize: 512,
      sharedIntermediateSize: 512,
      normalizeWeights: true,
    },
  },
  expertNames: gatedSharedExpertNames,
  gguf: {
    architecture: "qwen35moe",
    layerNames: { ...qwen35LayerNames, ...expertLayerNames(gatedSharedExpertNames) },
    ropeLayout: "neox",
    settings: (values, base) => {
      const recurrent = gatedDeltaGguf(values, base);
      return {
        ...recurrent,
        ...ggufExperts(
          values,
          { ...base, ...recurrent },
          { normalizeWeights: true, hasOwnSize: true, isShared: true },
        ),
      };
    },
  },
};
