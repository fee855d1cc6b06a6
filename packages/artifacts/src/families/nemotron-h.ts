import { artifactInvalid, artifactUnsupported } from "@octavo/text/files/artifact-file";
import { groupsOf } from "../config/config-experts.js";
import type { ConfigJson } from "../config/config-schema.js";
import {
  checkStateSpace,
  readStateSpaceGguf,
  stateSpaceLayerNames,
  stepBounds,
} from "../config/state-space-config.js";
import { ggufExperts } from "../gguf/family-settings.js";
import type { GgufValues } from "../gguf/values.js";
import { decoder } from "../program/layers.js";
import type { ExpertNames } from "../program/mixture-of-experts.js";
import type { ModelConfig, StateSpaceConfig } from "../program/model-config.js";
import type { ExpertRouting, GgufBase, ModelFamily } from "../program/model-family.js";
import { stateSpace } from "../program/recurrent-layers.js";

type Block = NonNullable<StateSpaceConfig["blocks"]>[number];

/** Letters of `hybrid_override_pattern`, and words of `layers_block_type`. */
const blocksByName: Readonly<Record<string, Block>> = {
  M: "state_space",
  "*": "attention",
  "-": "mlp",
  E: "experts",
  mamba: "state_space",
  linear_attention: "state_space",
  attention: "attention",
  full_attention: "attention",
  mlp: "mlp",
  moe: "experts",
};

const names = {
  firstNorm: "norm",
  secondNorm: "norm",
  attention: "mixer",
  up: "mixer.up_proj",
  down: "mixer.down_proj",
} as const;

const expertNames: ExpertNames = {
  router: "mixer.gate",
  expert: (index) => ({
    gate: `mixer.experts.${index}.up_proj`,
    down: `mixer.experts.${index}.down_proj`,
  }),
  fused: { gateUp: "mixer.experts.gate_up_proj", down: "mixer.experts.down_proj" },
  selectionBias: "mixer.gate.e_score_correction_bias",
  shared: { mlp: "mixer.shared_experts" },
};

const routing: ExpertRouting = { scoring: "sigmoid", hasSelectionBias: true };

/** Nemotron-H and Nemotron 3: layers of one block each, Mamba-2, attention without rotation, MLP or mixture, with squared ReLUs. */
export const nemotronHFamily: ModelFamily = {
  architecture: "NemotronHForCausalLM",
  modelType: "nemotron_h",
  defaults: {
    hiddenSize: 4_096,
    numLayers: 52,
    numHeads: 32,
    numKvHeads: 8,
    headDim: 128,
    intermediateSize: 21_504,
    vocabSize: 131_072,
    maxPositionEmbeddings: 4_096,
    bosTokenId: 1,
    eosTokenId: 2,
    experts: {
      count: 8,
      perToken: 2,
      intermediateSize: 7_688,
      sharedIntermediateSize: 7_688,
      sharedSize: (config) => config.moe_shared_expert_intermediate_size ?? 7_688,
      normalizeWeights: { absent: true },
      isAbsent: (config) => !(blocksOf(config)?.includes("experts") ?? false),
      routing: (config) => ({
        ...routing,
        weightScale: config.routed_scaling_factor ?? 1,
        ...groupsOf(config),
      }),
    },
  },
  biases: { qkv: "config", output: "config", mlp: "config" },
  settings: nemotronSettings,
  expertNames,
  gguf: {
    architecture: "nemotron_h",
    otherArchitectures: ["nemotron_h_moe"],
    layerNames: {
      ...stateSpaceLayerNames("mixer"),
      attn_norm: "norm",
      attn_q: "mixer.q_proj",
      attn_k: "mixer.k_proj",
      attn_v: "mixer.v_proj",
      attn_output: "mixer.o_proj",
      ffn_up: "mixer.up_proj",
      ffn_down: "mixer.down_proj",
      ffn_gate_inp: "mixer.gate",
      ffn_up_exps: "mixer.experts.*.up_proj",
      ffn_down_exps: "mixer.experts.*.down_proj",
      ffn_up_shexp: "mixer.shared_experts.up_proj",
      ffn_down_shexp: "mixer.shared_experts.down_proj",
      "=exp_probs_b.bias": "mixer.gate.e_score_correction_bias",
    },
    ropeLayout: "neox",
    settings: nemotronGguf,
  },
  plan: (builder) => {
    const { recurrence } = builder.config;
    const blocks = recurrence?.kind === "state_space" ? (recurrence.blocks ?? []) : [];
    const mix = stateSpace(builder, "mixer");
    return decoder(
      builder,
      (layer, index) => {
        const block = blocks[index];
        if (block === "attention") layer.attention();
        else if (block === "mlp") layer.plainMlp();
        else if (block === "experts") layer.experts(expertNames);
        else layer.mixer(mix);
      },
      { names },
    );
  },
};

/** Undefined where config.json does not say. @returns `undefined` entries for names that are not known */
function blocksOf(config: ConfigJson): (Block | undefined)[] | undefined {
  const named = config.hybrid_override_pattern ?? config.layer_types ?? config.layers_block_type;
  if (named === null || named === undefined) return undefined;
  return Array.from(named, (name) => (Object.hasOwn(blocksByName, name) ? blocksByName[name] : undefined));
}

function nemotronSettings(path: string, config: ConfigJson): Partial<ModelConfig> {
  const named = blocksOf(config);
  if (named === undefined)
    throw artifactInvalid(path, "has neither hybrid_override_pattern nor layers_block_type");
  const blocks = named.map((block, layer) => {
    if (block !== undefined) return block;
    throw artifactUnsupported(path, `has a layer of an unknown type, number ${layer}`);
  });
  const activation = config.mlp_hidden_act ?? "relu2";
  if (activation !== "relu2")
    throw artifactUnsupported(
      path,
      `has the activation ${JSON.stringify(activation.slice(0, 100))}; supported is relu2`,
    );
  if (typeof config.moe_latent_size === "number")
    throw artifactUnsupported(
      path,
      "has experts of a latent of their own (moe_latent_size), which is not supported",
    );
  const numHeads = config.mamba_num_heads ?? 128;
  return {
    numLayers: blocks.length,
    rmsNormEps: config.layer_norm_epsilon ?? 1e-5,
    hiddenActivation: "relu_squared",
    layersWithoutRope: blocks.map(() => true),
    slidingWindows: blocks.map(() => undefined),
    recurrence: {
      ...checkStateSpace(path, {
        layers: blocks.map((block) => block !== "attention"),
        taps: config.conv_kernel ?? 4,
        numGroups: config.n_groups ?? 8,
        numHeads,
        inner: numHeads * (config.mamba_head_dim ?? 64),
        stateSize: config.ssm_state_size ?? 128,
        hasConvolutionBias: config.use_conv_bias ?? true,
        hasProjectionBias: config.use_bias ?? false,
        norm: "after_gate",
        ...stepBounds(path, config),
        rateForm: "log",
      }),
      blocks,
    },
  };
}

function nemotronGguf(values: GgufValues, base: GgufBase): Partial<ModelConfig> {
  const numLayers = Math.min(base.numLayers - (values.number("nextn_predict_layers") ?? 0), 1_024);
  const numKvHeads = values.numbers("attention.head_count_kv");
  const widths = values.numbers("feed_forward_length");
  const hasExperts = (values.number("expert_count") ?? 0) > 0;
  const blocks = Array.from({ length: numLayers }, (_, layer): Block => {
    if (numKvHeads?.[layer] !== 0) return "attention";
    return widths?.[layer] === 0 ? "state_space" : hasExperts ? "experts" : "mlp";
  });
  const isFlat = blocks.map(() => undefined);
  return {
    numLayers,
    hiddenActivation: "relu_squared",
    layersWithoutRope: blocks.map(() => true),
    slidingWindows: isFlat,
    recurrence: {
      ...readStateSpaceGguf(
        values,
        blocks.map((block) => block !== "attention"),
        "after_gate",
      ),
      blocks,
    },
    ...(hasExperts &&
      ggufExperts(
        values,
        { ...base, numLayers },
        { normalizeWeights: true, hasOwnSize: true, isShared: true, routing },
      )),
  };
}
