import { z } from "zod";
import type { ModelConfig, RopeConfig } from "../program/model-config.js";
import { artifactInvalid, artifactUnsupported } from "@octavo/text/files/artifact-file";
import { parseForm } from "@octavo/text/files/bounded-json";
import { type ArchitectureDefaults, architectures } from "./config-architectures.js";
import { readExperts } from "./config-experts.js";
import { familySettings } from "./config-families.js";
import { checkModelConfig, usablePositions } from "./model-sizes.js";
import { readRopeScaling, ropeParametersSchema } from "./rope-config.js";

/** Architectures whose config.json this file can read. */
export const knownArchitectures: readonly string[] = Object.keys(architectures);

const tokenIds = z.union([z.number().int(), z.array(z.number().int()).max(1024)]);

/** Of one kind, or since transformers 5 of each kind of layer. */
const layeredRopeSchema = ropeParametersSchema.extend({
  full_attention: ropeParametersSchema.nullish(),
  sliding_attention: ropeParametersSchema.nullish(),
});

const configSchema = z.looseObject({
  architectures: z.array(z.string()).nullish(),
  model_type: z.string().nullish(),
  vocab_size: z.number().nullish(),
  hidden_size: z.number().nullish(),
  intermediate_size: z.number().nullish(),
  num_hidden_layers: z.number().nullish(),
  num_attention_heads: z.number().nullish(),
  num_key_value_heads: z.number().nullish(),
  head_dim: z.number().nullish(),
  rms_norm_eps: z.number().nullish(),
  max_position_embeddings: z.number().nullish(),
  tie_word_embeddings: z.boolean().nullish(),
  attention_bias: z.boolean().nullish(),
  mlp_bias: z.boolean().nullish(),
  hidden_act: z.string().nullish(),
  hidden_activation: z.string().nullish(),
  rope_theta: z.number().nullish(),
  rope_scaling: ropeParametersSchema.nullish(),
  rope_parameters: layeredRopeSchema.nullish(),
  original_max_position_embeddings: z.number().nullish(),
  partial_rotary_factor: z.number().nullish(),
  use_sliding_window: z.boolean().nullish(),
  sliding_window: z.number().nullish(),
  max_window_layers: z.number().nullish(),
  sliding_window_pattern: z.number().nullish(),
  rope_local_base_freq: z.number().nullish(),
  query_pre_attn_scalar: z.number().nullish(),
  attn_logit_softcapping: z.number().nullish(),
  final_logit_softcapping: z.number().nullish(),
  embedding_multiplier: z.number().nullish(),
  residual_multiplier: z.number().nullish(),
  attention_multiplier: z.number().nullish(),
  logits_scaling: z.number().nullish(),
  no_rope_layers: z.array(z.number()).max(1024).nullish(),
  no_rope_layer_interval: z.number().nullish(),
  qkv_bias: z.boolean().nullish(),
  clip_qkv: z.number().nullish(),
  swiglu_limit: z.number().nullish(),
  swiglu_alpha: z.number().nullish(),
  num_local_experts: z.number().optional(),
  num_experts: z.number().nullish(),
  num_experts_per_tok: z.number().nullish(),
  moe_intermediate_size: z.number().nullish(),
  shared_expert_intermediate_size: z.number().nullish(),
  norm_topk_prob: z.boolean().nullish(),
  decoder_sparse_step: z.number().nullish(),
  mlp_only_layers: z.array(z.number()).max(1024).nullish(),
  layer_types: z.array(z.string()).max(1024).nullish(),
  bos_token_id: tokenIds.nullish(),
  eos_token_id: tokenIds.nullish(),
});

export type ConfigJson = z.infer<typeof configSchema>;

/**
 * A model's config.json. `dtype` is left to the tensors, which cannot disagree with themselves.
 * @param supported architectures that a model exists for
 * @throws OctavoError `artifact_invalid` or `artifact_unsupported`
 */
export function readConfigJson(
  path: string,
  json: unknown,
  supported: readonly string[],
  dtype: ModelConfig["dtype"],
): ModelConfig {
  const config = parseForm(path, json, configSchema);
  const [architecture, defaults] = findArchitecture(path, config, supported);
  const hiddenSize = config.hidden_size ?? 4_096;
  const numLayers = config.num_hidden_layers ?? 32;
  const numHeads = config.num_attention_heads ?? 32;
  const intermediateSize = config.intermediate_size ?? defaults.intermediateSize;
  const headDim = config.head_dim ?? headDimDefault(path, defaults, config, hiddenSize, numHeads);
  const maxPositionEmbeddings = config.max_position_embeddings ?? defaults.maxPositionEmbeddings;
  const layered = config.rope_parameters ?? undefined;
  const rope = layered?.full_attention ?? layered ?? config.rope_scaling ?? undefined;
  const partial = rope?.partial_rotary_factor ?? config.partial_rotary_factor ?? 1;
  const scaling = readRopeScaling(path, rope, maxPositionEmbeddings, config.original_max_position_embeddings);
  const bias = (rule: boolean | "config", given: boolean | null | undefined): boolean =>
    rule === "config" ? (given ?? false) : rule;

  const globalRope: RopeConfig = {
    theta: rope?.rope_theta ?? config.rope_theta ?? defaults.ropeTheta ?? 10_000,
    rotaryDim: Math.trunc(headDim * partial),
    layout: "neox",
    scaling,
  };

  return checkModelConfig(path, {
    architecture,
    vocabSize: config.vocab_size ?? defaults.vocabSize,
    hiddenSize,
    intermediateSize,
    numLayers,
    numHeads,
    numKvHeads: config.num_key_value_heads ?? kvHeadsDefault(defaults, config, numHeads),
    headDim,
    rmsNormEps: config.rms_norm_eps ?? defaults.rmsNormEps ?? 1e-6,
    maxPositionEmbeddings: usablePositions(maxPositionEmbeddings, scaling),
    tieWordEmbeddings: config.tie_word_embeddings ?? defaults.tieWordEmbeddings ?? false,
    attentionBias: bias(defaults.attentionBias.qkv, config.attention_bias),
    attentionOutputBias: bias(defaults.attentionBias.output, config.attention_bias),
    mlpBias: bias(defaults.mlpBias, config.mlp_bias),
    hiddenActivation: readActivation(
      path,
      config.hidden_activation ?? config.hidden_act ?? defaults.hiddenActivation ?? "silu",
    ),
    rope: globalRope,
    ...familySettings(path, architecture, config, globalRope),
    ...readExperts(path, config, defaults, intermediateSize, numLayers),
    slidingWindows: readWindows(path, config, defaults, numLayers),
    dtype,
    bosTokenId: config.bos_token_id === undefined ? defaults.bosTokenId : toIds(config.bos_token_id)[0],
    eosTokenIds: config.eos_token_id === undefined ? toIds(defaults.eosTokenId) : toIds(config.eos_token_id),
  });
}

/** A token id, a list of them, or nothing, as a list. */
export function toIds(value: number | readonly number[] | null | undefined): readonly number[] {
  if (value === null || value === undefined) return [];
  return typeof value === "number" ? [value] : value;
}

function findArchitecture(
  path: string,
  config: ConfigJson,
  supported: readonly string[],
): [string, ArchitectureDefaults] {
  const byType = Object.entries(architectures).find(([, row]) => row.modelType === config.model_type)?.[0];
  const name = config.architectures?.[0] ?? byType;
  if (name === undefined) {
    throw artifactInvalid(path, "names neither an architecture (architectures) nor a model_type");
  }
  const defaults = Object.hasOwn(architectures, name) ? architectures[name] : undefined;
  if (defaults === undefined || !supported.includes(name)) {
    throw artifactUnsupported(
      path,
      `asks for the architecture ${JSON.stringify(name.slice(0, 100))}; supported are ${supported.join(", ")}`,
    );
  }
  return [name, defaults];
}

function headDimDefault(
  path: string,
  defaults: ArchitectureDefaults,
  config: ConfigJson,
  hiddenSize: number,
  numHeads: number,
): number {
  if (defaults.headDim !== undefined && config.head_dim === undefined) return defaults.headDim;
  const size = hiddenSize / numHeads;
  if (!Number.isInteger(size)) {
    throw artifactInvalid(
      path,
      `has hidden_size ${hiddenSize}, which ${numHeads} heads do not divide, and no head_dim`,
    );
  }
  return size;
}

/** The class default holds for an absent field; an explicit null means one key-value head per head. */
function kvHeadsDefault(defaults: ArchitectureDefaults, config: ConfigJson, numHeads: number): number {
  return config.num_key_value_heads === null ? numHeads : (defaults.numKvHeads ?? numHeads);
}

function readActivation(path: string, name: string): ModelConfig["hiddenActivation"] {
  switch (name) {
    case "silu":
    case "swish":
      return "silu";
    case "gelu":
      return "gelu";
    case "gelu_pytorch_tanh":
    case "gelu_new":
    case "gelu_fast":
      return "gelu_tanh";
    default:
      throw artifactUnsupported(
        path,
        `has the activation ${JSON.stringify(name.slice(0, 100))}; supported are silu and gelu`,
      );
  }
}

/** transformers' defaults: a window of 4096, and Qwen's layers from 28 on. */
function readWindows(
  path: string,
  config: ConfigJson,
  defaults: ArchitectureDefaults,
  numLayers: number,
): (number | undefined)[] {
  const absent = defaults.slidingWindow === undefined ? 4_096 : defaults.slidingWindow;
  const window = (config.sliding_window === undefined ? absent : config.sliding_window) ?? undefined;
  const layers = Array.from(
    { length: Math.min(Math.max(Math.trunc(numLayers), 0), 1_024) },
    (_, layer) => layer,
  );
  if (defaults.window === "none") return layers.map(() => undefined);
  if (window !== undefined && (!Number.isSafeInteger(window) || window < 1)) {
    throw artifactInvalid(path, `has the sliding window ${window}`);
  }
  if (config.layer_types) {
    return config.layer_types.map((kind) => {
      if (kind === "full_attention") return undefined;
      if (kind !== "sliding_attention") {
        throw artifactUnsupported(path, `has a layer of type ${JSON.stringify(kind.slice(0, 100))}`);
      }
      if (window === undefined)
        throw artifactInvalid(path, "has sliding_attention layers but no sliding_window");
      return window;
    });
  }
  if (defaults.window === "always") return layers.map(() => window);
  if (defaults.window === "by pattern") {
    const pattern = config.sliding_window_pattern ?? defaults.slidingPattern ?? 1;
    return layers.map((layer) => ((layer + 1) % pattern === 0 ? undefined : window));
  }
  if (defaults.window === "when used" || defaults.window === "alternating when used") {
    if (config.use_sliding_window !== true) return layers.map(() => undefined);
    if (defaults.window === "when used") return layers.map(() => window);
    const end = config.max_window_layers ?? 28;
    return layers.map((layer) => (layer % 2 === 0 && layer < end ? window : undefined));
  }
  const firstWindowed = config.use_sliding_window === true ? (config.max_window_layers ?? 28) : Infinity;
  return layers.map((layer) => (layer >= firstWindowed ? window : undefined));
}
