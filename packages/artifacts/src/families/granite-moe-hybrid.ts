import { artifactUnsupported } from "@octavo/text/files/artifact-file";
import type { ConfigJson } from "../config/config-schema.js";
import { readStateSpace, readStateSpaceGguf, stateSpaceLayerNames } from "../config/state-space-config.js";
import { ggufExperts } from "../gguf/family-settings.js";
import { expertLayerNames, llamaLayerNames } from "../gguf/names.js";
import { decoder } from "../program/layers.js";
import type { ExpertNames } from "../program/mixture-of-experts.js";
import type { ModelFamily } from "../program/model-family.js";
import { hasAttention, stateSpace } from "../program/recurrent-layers.js";
import { graniteGgufScales, graniteScales } from "./granite.js";
import { graniteExpertNames } from "./granite-moe.js";

const expertNames: ExpertNames = {
  ...graniteExpertNames,
  shared: { mlp: "shared_mlp", fused: { gateUp: "input_linear", down: "output_linear" } },
};

const stateTypes = ["mamba", "mamba2", "linear_attention"];
const attentionTypes = ["attention", "full_attention"];

/** Granite 4: Mamba-2 layers, attention without rotation every few, and an MLP for every token, beside experts in the larger models. */
export const graniteMoeHybridFamily: ModelFamily = {
  architecture: "GraniteMoeHybridForCausalLM",
  modelType: "granitemoehybrid",
  defaults: {
    hiddenSize: 4_096,
    numLayers: 32,
    numHeads: 32,
    intermediateSize: 11_008,
    vocabSize: 32_000,
    maxPositionEmbeddings: 2_048,
    bosTokenId: 1,
    eosTokenId: 2,
    experts: {
      count: 8,
      perToken: 2,
      normalizeWeights: true,
      sharedIntermediateSize: 1_024,
      isAbsent: (config) => config.num_local_experts === 0,
    },
  },
  biases: { qkv: "config", output: "config", mlp: false },
  settings: (path, config) => {
    const layers = stateLayers(path, config);
    const isDense = config.num_local_experts === 0;
    return {
      ...graniteScales(path, config),
      ...(isDense && { intermediateSize: config.shared_intermediate_size ?? 1_024 }),
      ...(config.position_embedding_type !== "rope" && { layersWithoutRope: layers.map(() => true) }),
      recurrence: readStateSpace(path, config, config.hidden_size ?? 4_096, layers, "after_gate"),
    };
  },
  expertNames,
  gguf: {
    architecture: "granitehybrid",
    layerNames: {
      ...llamaLayerNames,
      ...expertLayerNames(expertNames),
      ...stateSpaceLayerNames("mamba"),
      ffn_gate: "shared_mlp.gate_proj",
      ffn_up: "shared_mlp.up_proj",
      ffn_down: "shared_mlp.output_linear",
    },
    ropeLayout: "interleaved",
    settings: (values, base) => {
      const numKvHeads = values.numbers("attention.head_count_kv");
      const layers = Array.from(
        { length: Math.min(base.numLayers, 1_024) },
        (_, layer) => numKvHeads?.[layer] === 0,
      );
      const isDense = (values.number("expert_count") ?? 0) === 0;
      const shared = values.number("expert_shared_feed_forward_length") ?? base.intermediateSize;
      return {
        ...graniteGgufScales(values, base),
        ...(isDense
          ? { intermediateSize: shared }
          : ggufExperts(values, base, { normalizeWeights: true, isShared: true })),
        recurrence: readStateSpaceGguf(values, layers, "after_gate"),
      };
    },
  },
  plan: (builder) => {
    const { config } = builder;
    const mix = stateSpace(builder, "mamba");
    // GGUF has gate and up apart.
    const isFused = !builder.has("model.layers.0.shared_mlp.gate_proj.weight");
    return decoder(
      builder,
      (layer, index) => {
        if (hasAttention(config, index)) layer.attention();
        else layer.mixer(mix);
        if (config.experts === undefined) layer.gatedMlp({ isFused });
        else layer.experts(expertNames);
      },
      {
        names: {
          gateUp: "shared_mlp.input_linear",
          gate: "shared_mlp.gate_proj",
          up: "shared_mlp.up_proj",
          down: "shared_mlp.output_linear",
        },
      },
    );
  },
};

/** Without a list, every layer is a Mamba-2 layer, which transformers allows and Octavo's cache does not. */
function stateLayers(path: string, config: ConfigJson): boolean[] {
  const types = config.layer_types ?? config.layers_block_type;
  if (!types) return Array.from({ length: Math.min(config.num_hidden_layers ?? 32, 1_024) }, () => true);
  return types.map((type) => {
    if (stateTypes.includes(type) || attentionTypes.includes(type)) return stateTypes.includes(type);
    throw artifactUnsupported(path, `has a layer of type ${JSON.stringify(type.slice(0, 100))}`);
  });
}
