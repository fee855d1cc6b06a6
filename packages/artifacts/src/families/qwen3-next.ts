import { ggufExperts } from "../gguf/family-settings.js";
import { expertLayerNames } from "../gguf/names.js";
import { gatedSharedExpertNames } from "../program/mixture-of-experts.js";
import type { ModelConfig } from "../program/model-config.js";
import type { ModelFamily } from "../program/model-family.js";
import {
  gatedDeltaConfig,
  gatedDeltaGguf,
  qwen35Defaults,
  qwen35Family,
  qwen35LayerNames,
} from "./qwen3-5.js";

const byKeyHead = ({ recurrence }: Partial<ModelConfig>): Partial<ModelConfig> =>
  recurrence?.kind === "gated_delta_rule"
    ? { recurrence: { ...recurrence, keyHeads: "grouped", isByKeyHead: true } }
    : {};

/** Qwen3-Next: Qwen3.5's layers, whose linear attention projects q, k, v and gates of each key head together. */
export const qwen3NextFamily: ModelFamily = {
  ...qwen35Family,
  architecture: "Qwen3NextForCausalLM",
  modelType: "qwen3_next",
  defaults: {
    ...qwen35Defaults,
    hiddenSize: 2_048,
    numLayers: 48,
    numKvHeads: 2,
    intermediateSize: 5_632,
    vocabSize: 151_936,
    experts: {
      count: 512,
      perToken: 10,
      intermediateSize: 512,
      sharedIntermediateSize: 512,
      normalizeWeights: { absent: true },
    },
  },
  settings: (path, config) => ({
    normWeightOffset: 1,
    ...byKeyHead({ recurrence: gatedDeltaConfig(path, config) }),
  }),
  expertNames: gatedSharedExpertNames,
  gguf: {
    architecture: "qwen3next",
    layerNames: {
      ...qwen35LayerNames,
      ...expertLayerNames(gatedSharedExpertNames),
      ssm_in: "linear_attn.in_proj_qkvz",
      ssm_ba: "linear_attn.in_proj_ba",
    },
    ropeLayout: "neox",
    settings: (values, base) => {
      const recurrent = gatedDeltaGguf(values, base);
      return {
        ...recurrent,
        ...byKeyHead(recurrent),
        ...ggufExperts(
          values,
          { ...base, ...recurrent },
          { normalizeWeights: true, hasOwnSize: true, isShared: true },
        ),
      };
    },
  },
};
