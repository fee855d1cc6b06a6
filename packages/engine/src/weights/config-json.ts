import { z } from "zod";
import type { ModelConfig } from "../models/model-config.js";
import { artifactInvalid, artifactUnsupported } from "./artifact-file.js";
import { parseForm } from "./bounded-json.js";
import { checkModelConfig } from "./model-sizes.js";
import { readRopeScaling, ropeParametersSchema, usablePositions } from "./rope-config.js";

/** What transformers' config class of an architecture assumes for a field that config.json leaves out. */
interface ArchitectureDefaults {
  readonly modelType: string;
  readonly vocabSize: number;
  readonly intermediateSize: number;
  readonly maxPositionEmbeddings: number;
  /** undefined: as many as heads. */
  readonly numKvHeads: number | undefined;
  /** undefined: hidden size / heads. */
  readonly headDim: number | undefined;
  readonly bosTokenId: number | undefined;
  readonly eosTokenId: number | undefined;
  /** Biases of q, k, v and of the output projection: `config` where attention_bias decides. */
  readonly attentionBias: { readonly qkv: boolean | "config"; readonly output: boolean | "config" };
  readonly mlpBias: boolean | "config";
  /** `always`: every layer has `sliding_window`; `by layer`: layer_types, or use_sliding_window from max_window_layers on. */
  readonly window: "none" | "always" | "by layer";
}

/** Sources: configuration_llama.py, _mistral.py, _qwen2.py, _qwen3.py of transformers, and the modeling files for biases. */
const architectures: Readonly<Record<string, ArchitectureDefaults>> = {
  LlamaForCausalLM: {
    modelType: "llama",
    vocabSize: 32_000,
    intermediateSize: 11_008,
    maxPositionEmbeddings: 2_048,
    numKvHeads: undefined,
    headDim: undefined,
    bosTokenId: 1,
    eosTokenId: 2,
    attentionBias: { qkv: "config", output: "config" },
    mlpBias: "config",
    window: "none",
  },
  MistralForCausalLM: {
    modelType: "mistral",
    vocabSize: 32_000,
    intermediateSize: 14_336,
    maxPositionEmbeddings: 131_072,
    numKvHeads: 8,
    headDim: undefined,
    bosTokenId: 1,
    eosTokenId: 2,
    attentionBias: { qkv: false, output: false },
    mlpBias: false,
    window: "always",
  },
  Qwen2ForCausalLM: {
    modelType: "qwen2",
    vocabSize: 151_936,
    intermediateSize: 22_016,
    maxPositionEmbeddings: 32_768,
    numKvHeads: 32,
    headDim: undefined,
    bosTokenId: undefined,
    eosTokenId: undefined,
    attentionBias: { qkv: true, output: false },
    mlpBias: false,
    window: "by layer",
  },
  Qwen3ForCausalLM: {
    modelType: "qwen3",
    vocabSize: 151_936,
    intermediateSize: 22_016,
    maxPositionEmbeddings: 32_768,
    numKvHeads: 32,
    headDim: 128,
    bosTokenId: undefined,
    eosTokenId: undefined,
    attentionBias: { qkv: "config", output: "config" },
    mlpBias: false,
    window: "by layer",
  },
};

/** Architectures whose config.json this file can read. */
export const knownArchitectures: readonly string[] = Object.keys(architectures);

const tokenIds = z.union([z.number().int(), z.array(z.number().int()).max(1024)]);

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
  rope_parameters: ropeParametersSchema.nullish(),
  partial_rotary_factor: z.number().nullish(),
  use_sliding_window: z.boolean().nullish(),
  sliding_window: z.number().nullish(),
  max_window_layers: z.number().nullish(),
  layer_types: z.array(z.string()).max(1024).nullish(),
  bos_token_id: tokenIds.nullish(),
  eos_token_id: tokenIds.nullish(),
});

type ConfigJson = z.infer<typeof configSchema>;

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
  const headDim = config.head_dim ?? headDimDefault(path, defaults, config, hiddenSize, numHeads);
  const maxPositionEmbeddings = config.max_position_embeddings ?? defaults.maxPositionEmbeddings;
  const rope = config.rope_parameters ?? config.rope_scaling ?? undefined;
  const partial = rope?.partial_rotary_factor ?? config.partial_rotary_factor ?? 1;
  const scaling = readRopeScaling(path, rope, maxPositionEmbeddings);
  const bias = (rule: boolean | "config", given: boolean | null | undefined): boolean =>
    rule === "config" ? (given ?? false) : rule;

  return checkModelConfig(path, {
    architecture,
    vocabSize: config.vocab_size ?? defaults.vocabSize,
    hiddenSize,
    intermediateSize: config.intermediate_size ?? defaults.intermediateSize,
    numLayers,
    numHeads,
    numKvHeads: config.num_key_value_heads ?? kvHeadsDefault(defaults, config, numHeads),
    headDim,
    rmsNormEps: config.rms_norm_eps ?? 1e-6,
    maxPositionEmbeddings: usablePositions(maxPositionEmbeddings, scaling),
    tieWordEmbeddings: config.tie_word_embeddings ?? false,
    attentionBias: bias(defaults.attentionBias.qkv, config.attention_bias),
    attentionOutputBias: bias(defaults.attentionBias.output, config.attention_bias),
    mlpBias: bias(defaults.mlpBias, config.mlp_bias),
    hiddenActivation: readActivation(path, config.hidden_activation ?? config.hidden_act ?? "silu"),
    rope: {
      theta: rope?.rope_theta ?? config.rope_theta ?? 10_000,
      rotaryDim: Math.trunc(headDim * partial),
      layout: "neox",
      scaling,
    },
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
  const window = config.sliding_window === undefined ? 4_096 : (config.sliding_window ?? undefined);
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
  const firstWindowed = config.use_sliding_window === true ? (config.max_window_layers ?? 28) : Infinity;
  return layers.map((layer) => (layer >= firstWindowed ? window : undefined));
}
