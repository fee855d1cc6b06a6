import type { BufferRef } from "@octavo/kernels";
import { artifactUnsupported } from "@octavo/text/files/artifact-file";
import type { ConfigJson, RopeParameters } from "../config/config-schema.js";
import { positive } from "../config/model-sizes.js";
import { readRopeScaling } from "../config/rope-config.js";
import { ggufExperts, ggufWindows } from "../gguf/family-settings.js";
import { type LayerNames, postNormLayerNames } from "../gguf/names.js";
import type { GgufValues } from "../gguf/values.js";
import { decoder } from "../program/layers.js";
import { type ExpertNames, expertBuffers, mixtureOfExperts } from "../program/mixture-of-experts.js";
import type { ModelConfig, RopeConfig } from "../program/model-config.js";
import type { ConfigDefaults, GgufBase, ModelFamily } from "../program/model-family.js";
import type { ProgramBuilder } from "../program/program-builder.js";
import type { LayerMixer } from "../program/recurrent-layers.js";

const layersPerGlobal = 6;
const globalRope = { rope_type: "proportional", rope_theta: 1_000_000, partial_rotary_factor: 0.25 };

const defaults = {
  hiddenSize: 2_304,
  numLayers: 30,
  numHeads: 8,
  numKvHeads: 4,
  headDim: 256,
  intermediateSize: 9_216,
  vocabSize: 262_144,
  maxPositionEmbeddings: 131_072,
  bosTokenId: 2,
  eosTokenId: 1,
  hiddenActivation: "gelu_pytorch_tanh",
  tieWordEmbeddings: true,
  slidingWindow: 512,
  experts: {
    count: 128,
    perToken: 8,
    intermediateSize: 704,
    normalizeWeights: true,
    isAbsent: ({ enable_moe_block: isMixture }) => isMixture !== true,
  },
} as const satisfies ConfigDefaults;

const expertNames: ExpertNames = {
  router: "router.proj",
  expert: (index) => ({
    gate: `experts.${index}.gate_proj`,
    up: `experts.${index}.up_proj`,
    down: `experts.${index}.down_proj`,
  }),
  fused: { gateUp: "experts.gate_up_proj", down: "experts.down_proj" },
  scales: "router.per_expert_scale",
};

const ggufNames: LayerNames = {
  ...postNormLayerNames,
  "=layer_output_scale.weight": "layer_scalar",
  inp_gate: "per_layer_input_gate",
  proj: "per_layer_projection",
  post_norm: "post_per_layer_input_norm",
  "@per_layer_token_embd.weight": "model.embed_tokens_per_layer.weight",
  "@per_layer_model_proj.weight": "model.per_layer_model_projection.weight",
  "@per_layer_proj_norm.weight": "model.per_layer_projection_norm.weight",
  ffn_gate_inp: "router.proj",
  "=ffn_gate_inp.scale": "router.scale",
  "=ffn_gate_up_exps.weight": "experts.gate_up_proj",
  "=ffn_down_exps.weight": "experts.down_proj",
  "=ffn_down_exps.scale": "router.per_expert_scale",
  post_ffw_norm_1: "post_feedforward_layernorm_1",
  pre_ffw_norm_2: "pre_feedforward_layernorm_2",
  post_ffw_norm_2: "post_feedforward_layernorm_2",
};

/**
 * Gemma 4, text (modeling_gemma4.py): Gemma 3's layers with normalised values and unscaled scores. Layers without a window have wider heads,
 * of which a part rotates, and may take values for keys. The last layers of the small models attend to what earlier ones keep, and each
 * layer has an embedding of the token of its own; in the mixtures, experts stand beside the MLP.
 */
export const gemma4Family: ModelFamily = {
  architecture: "Gemma4ForCausalLM",
  modelType: "gemma4_text",
  defaults,
  biases: { qkv: "config", output: "config", mlp: false },
  hasWindow,
  settings: gemma4Settings,
  expertNames,
  gguf: {
    architecture: "gemma4",
    layerNames: ggufNames,
    ropeLayout: "neox",
    layersDiffer: true,
    settings: gemma4GgufSettings,
  },
  plan: (builder) => {
    const inputs = perLayerInputs(builder);
    const mixture = builder.config.experts === undefined ? undefined : mlpWithExperts(builder);
    return decoder(
      builder,
      (layer) => {
        layer.attention({
          queryKeyNorm: "head",
          valueNorm: true,
          seesImagesInWindows: true,
          norms: { before: "input_layernorm", after: "post_attention_layernorm" },
        });
        if (mixture === undefined) {
          layer.gatedMlp({
            norms: { before: "pre_feedforward_layernorm", after: "post_feedforward_layernorm" },
          });
        } else layer.mixer(mixture, { after: "post_feedforward_layernorm" });
        if (inputs !== undefined) layer.mixer(inputs.mix, { after: "post_per_layer_input_norm" });
        layer.scaleStream("layer_scalar");
      },
      inputs === undefined ? {} : { onEmbedded: inputs.prepare },
    );
  },
};

function gemma4Settings(path: string, config: ConfigJson): Partial<ModelConfig> {
  const { layer_types: types, use_bidirectional_attention: sees } = config;
  if (sees === "all") throw artifactUnsupported(path, "attends in both directions, which is not supported");
  if (config.sliding_window === null)
    throw artifactUnsupported(path, "has no sliding_window, which Gemma 4's layers are told apart by");
  if (types?.at(-1) === "sliding_attention")
    throw artifactUnsupported(path, "has a sliding window in its last layer, which Gemma 4 has not");
  const localDim = config.head_dim ?? defaults.headDim;
  const valuesAreKeys = config.attention_k_eq_v ?? false;
  const own = globalOverride(path, config) ?? {
    head_dim: config.global_head_dim ?? 512,
    num_key_value_heads: valuesAreKeys ? config.num_global_key_value_heads : undefined,
  };
  const logitSoftCap = config.final_logit_softcapping ?? undefined;
  const size = config.hidden_size_per_layer_input ?? 256;
  const numShared = config.num_kv_shared_layers ?? 0;
  const numLayers = layersOf(config);
  const inner = config.intermediate_size ?? defaults.intermediateSize;
  const ropeOf = (kind: "full_attention" | "sliding_attention", rotaryDim: number): RopeConfig => {
    const absent: RopeParameters = kind === "full_attention" ? globalRope : {};
    const given = config.rope_parameters === undefined ? absent : (config.rope_parameters?.[kind] ?? absent);
    const theta = positive(path, "rope_theta", given.rope_theta ?? 10_000);
    const scaling = readRopeScaling(
      path,
      given,
      config.max_position_embeddings ?? defaults.maxPositionEmbeddings,
    );
    const turned = scaling.kind === "proportional" ? 1 : (given.partial_rotary_factor ?? 1);
    return { theta, rotaryDim: Math.trunc(rotaryDim * turned), layout: "neox", scaling };
  };
  return {
    ...gemma4Scales(config.hidden_size ?? defaults.hiddenSize),
    globalHeads: {
      headDim: own.head_dim ?? localDim,
      numKvHeads: own.num_key_value_heads ?? config.num_key_value_heads ?? defaults.numKvHeads,
      valuesAreKeys,
    },
    rope: ropeOf("full_attention", own.head_dim ?? localDim),
    localRope: ropeOf("sliding_attention", localDim),
    ...(numShared > 0 && { numSharedKvLayers: numShared }),
    ...(numShared > 0 &&
      config.use_double_wide_mlp === true && {
        intermediateSizes: Array.from({ length: numLayers }, (_, layer) =>
          layer < numLayers - numShared ? inner : 2 * inner,
        ),
      }),
    ...(size !== 0 && {
      perLayerInput: { size, vocabSize: config.vocab_size_per_layer_input ?? defaults.vocabSize },
    }),
    ...(logitSoftCap !== undefined && {
      logitSoftCap: positive(path, "final_logit_softcapping", logitSoftCap),
    }),
  };
}

function layersOf({ num_hidden_layers: count }: ConfigJson): number {
  return Math.min(Math.max(Math.trunc(count ?? defaults.numLayers), 0), 1_024);
}

function hasWindow(layer: number, config: ConfigJson): boolean {
  return (layer + 1) % layersPerGlobal !== 0 && layer + 1 !== layersOf(config);
}

/** The heads of the layers without a window, where a file as transformers 5 saves it lists them layer by layer. */
function globalOverride(path: string, config: ConfigJson): LayerOverride | undefined {
  const { per_layer_config: listed, layer_types: types } = config;
  if (listed === undefined || listed === null) return undefined;
  const layers = Array.from({ length: layersOf(config) }, (_, layer) => layer);
  const globals = layers.filter((layer) =>
    types ? types[layer] === "full_attention" : !hasWindow(layer, config),
  );
  const [first = {}, ...rest] = globals.map((layer) => listed[layer] ?? {});
  const { head_dim: headDim, num_key_value_heads: kvHeads } = first;
  const isLike = (other: LayerOverride): boolean =>
    other.head_dim === headDim && other.num_key_value_heads === kvHeads;
  if (!rest.every(isLike) || Object.keys(listed).some((layer) => !globals.includes(Number(layer))))
    throw artifactUnsupported(
      path,
      "has a per_layer_config that sets apart other layers than those without a window",
    );
  return first;
}

type LayerOverride = NonNullable<ConfigJson["per_layer_config"]>[string];

function gemma4Scales(hiddenSize: number): Partial<ModelConfig> {
  return { embeddingScale: Math.sqrt(hiddenSize), attentionScale: 1 };
}

function gemma4GgufSettings(values: GgufValues, base: GgufBase): Partial<ModelConfig> {
  const { hiddenSize, numLayers, numKvHeads, headDim, rope } = base;
  const slidingWindows = ggufWindows(
    values,
    base,
    values.needNumber("attention.sliding_window"),
    layersPerGlobal,
  );
  const localDim = values.number("attention.key_length_swa") ?? headDim;
  const kvHeads = values.numbers("attention.head_count_kv");
  const kvHeadsWhere = (isLocal: boolean): number =>
    kvHeads?.[slidingWindows.findIndex((window) => (window !== undefined) === isLocal)] ?? numKvHeads;
  const inner = values.numbers("feed_forward_length");
  const numShared = values.number("attention.shared_kv_layers") ?? 0;
  const size = values.number("embedding_length_per_layer_input") ?? 0;
  const logitSoftCap = values.number("final_logit_softcapping") ?? 0;
  return {
    ...gemma4Scales(hiddenSize),
    hiddenActivation: "gelu_tanh",
    slidingWindows,
    headDim: localDim,
    numKvHeads: kvHeadsWhere(true),
    // The tensors say whether values are keys; without any, they are where the heads differ in number.
    globalHeads: {
      headDim,
      numKvHeads: kvHeadsWhere(false),
      valuesAreKeys: kvHeadsWhere(true) === kvHeadsWhere(false) ? undefined : true,
    },
    localRope: {
      theta: values.number("rope.freq_base_swa") ?? 10_000,
      rotaryDim: values.number("rope.dimension_count_swa") ?? localDim,
      layout: rope.layout,
      scaling: { kind: "none" },
    },
    ...(numShared > 0 && { numSharedKvLayers: numShared }),
    ...(inner !== undefined &&
      inner.some((width) => width !== inner[0]) && {
        intermediateSize: Math.min(...inner),
        intermediateSizes: inner.slice(0, numLayers),
      }),
    ...(size > 0 && { perLayerInput: { size, vocabSize: base.vocabSize } }),
    ...(logitSoftCap > 0 && { logitSoftCap }),
    ...((values.number("expert_count") ?? 0) > 0 &&
      ggufExperts(values, base, { normalizeWeights: true, hasOwnSize: true })),
  };
}

/** What each layer takes of a token beside the stream: (norm of a projection of its embedding + a second embedding) / sqrt(2). */
function perLayerInputs(
  builder: ProgramBuilder,
): { readonly prepare: (embedded: BufferRef) => void; readonly mix: LayerMixer } | undefined {
  const { hiddenSize, numLayers, hiddenActivation: activation, perLayerInput } = builder.config;
  if (perLayerInput === undefined || activation === "clamped_swiglu") return undefined;
  const { size, vocabSize } = perLayerInput;
  const width = numLayers * size;
  const [inputs, looked, gate] = [builder.buffer(width), builder.buffer(width), builder.buffer(size)];
  return {
    prepare: (embedded) => {
      const projection = { name: "model.per_layer_model_projection", rows: width };
      builder.project(embedded, [projection], hiddenSize, inputs);
      builder.scale(inputs, hiddenSize ** -0.5);
      builder.norm("model.per_layer_projection_norm.weight", inputs, inputs, { groupSize: size });
      const weight = builder.matrix("model.embed_tokens_per_layer.weight", vocabSize, width);
      builder.add({ op: "embedding", weight, out: looked, scale: Math.sqrt(size) });
      builder.add({ op: "add", in: looked, out: inputs });
      builder.scale(inputs, Math.SQRT1_2);
    },
    mix: (stream, out, layer) => {
      const name = `model.layers.${layer}`;
      const own = { ...inputs, column: layer * size, width: size };
      builder.project(stream, [{ name: `${name}.per_layer_input_gate`, rows: size }], hiddenSize, gate);
      builder.add({ op: "gate", in: gate, on: own, activation });
      builder.project(own, [{ name: `${name}.per_layer_projection`, rows: hiddenSize }], size, out);
    },
  };
}

/** The MLP and the experts, each with norms of its own, read the stream; the router reads it normalised in its own way. */
function mlpWithExperts(builder: ProgramBuilder): LayerMixer {
  const { config } = builder;
  const { hiddenSize, intermediateSize: inner, hiddenActivation: activation, experts } = config;
  const [normed, routed, mixed] = [0, 1, 2].map(() => builder.buffer(hiddenSize)) as [
    BufferRef,
    BufferRef,
    BufferRef,
  ];
  const [gateUp, activated] = [builder.buffer(2 * inner), builder.buffer(inner)];
  const buffers = experts && expertBuffers(builder, experts);
  return (stream, out, layer) => {
    const at = (name: string): string => `model.layers.${layer}.${name}`;
    builder.norm(at("pre_feedforward_layernorm.weight"), stream, normed);
    const gateAndUp = ["gate_proj", "up_proj"].map((name) => ({ name: at(`mlp.${name}`), rows: inner }));
    builder.project(normed, gateAndUp, hiddenSize, gateUp);
    builder.add({ op: "gated_activation", in: gateUp, out: activated, activation });
    builder.project(activated, [{ name: at("mlp.down_proj"), rows: hiddenSize }], inner, out);
    builder.norm(at("post_feedforward_layernorm_1.weight"), out, out);
    if (buffers === undefined) return;
    builder.norm(at("router.scale"), stream, routed);
    builder.scale(routed, hiddenSize ** -0.5);
    builder.norm(at("pre_feedforward_layernorm_2.weight"), stream, normed);
    mixtureOfExperts(builder, buffers, expertNames, layer, normed, mixed, routed);
    builder.norm(at("post_feedforward_layernorm_2.weight"), mixed, mixed);
    builder.add({ op: "add", in: mixed, out });
  };
}
