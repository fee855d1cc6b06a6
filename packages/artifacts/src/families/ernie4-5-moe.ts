import { artifactUnsupported } from "@octavo/text/files/artifact-file";
import { ggufExperts } from "../gguf/family-settings.js";
import { expertLayerNames, llamaLayerNames } from "../gguf/names.js";
import { decoder } from "../program/layers.js";
import { type ExpertNames, qwenExpertNames } from "../program/mixture-of-experts.js";
import type { ExpertRouting, ModelFamily } from "../program/model-family.js";
import { ernie45Family } from "./ernie4-5.js";

const expertNames: ExpertNames = {
  ...qwenExpertNames,
  selectionBias: "mlp.moe_statics.e_score_correction_bias",
  shared: { mlp: "mlp.shared_experts" },
};

const routing: ExpertRouting = { hasSelectionBias: true };

/** ERNIE 4.5 as a mixture: experts chosen by a biased softmax behind the first layers, beside shared ones. */
export const ernie45MoeFamily: ModelFamily = {
  ...ernie45Family,
  architecture: "Ernie4_5_MoeForCausalLM",
  modelType: "ernie4_5_moe",
  defaults: {
    hiddenSize: 2_560,
    numLayers: 28,
    numHeads: 20,
    numKvHeads: 4,
    intermediateSize: 12_288,
    vocabSize: 103_424,
    maxPositionEmbeddings: 131_072,
    bosTokenId: 1,
    eosTokenId: 2,
    ropeTheta: 500_000,
    rmsNormEps: 1e-5,
    tieWordEmbeddings: true,
    experts: {
      count: 64,
      perToken: 6,
      intermediateSize: 1_536,
      sharedIntermediateSize: 3_072,
      sharedSize: (config) => (config.moe_num_shared_experts ?? 2) * (config.moe_intermediate_size ?? 1_536),
      normalizeWeights: true,
      numDenseLayers: (config) => config.moe_layer_start_index ?? 1,
      routing: () => routing,
    },
  },
  settings: (path, config, rope) => {
    const last = config.moe_layer_end_index ?? -1;
    if (last !== -1 && last < (config.num_hidden_layers ?? 28) - 1)
      throw artifactUnsupported(path, `has no experts behind layer ${last}, which is not supported`);
    return { ...ernie45Family.settings?.(path, config, rope) };
  },
  expertNames,
  gguf: {
    architecture: "ernie4_5-moe",
    layerNames: {
      ...llamaLayerNames,
      ...expertLayerNames(expertNames),
      "=exp_probs_b.bias": "mlp.moe_statics.e_score_correction_bias",
    },
    ropeLayout: "interleaved",
    isInterleavedAsTrained: true,
    settings: (values, base) => {
      const size = values.number("expert_feed_forward_length") ?? base.intermediateSize;
      const { experts } = ggufExperts(values, base, {
        normalizeWeights: true,
        hasOwnSize: true,
        isShared: true,
        routing,
      });
      const sharedIntermediateSize =
        values.number("expert_shared_feed_forward_length") ??
        (values.number("expert_shared_count") ?? 2) * size;
      return { experts: { ...experts, sharedIntermediateSize } };
    },
  },
  plan: (builder) => {
    const { experts } = builder.config;
    return decoder(builder, (layer, index) => {
      layer.attention();
      if (experts?.denseLayers[index] === true) layer.gatedMlp();
      else layer.experts(expertNames);
    });
  },
};
