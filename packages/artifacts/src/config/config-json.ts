import { artifactInvalid, artifactUnsupported } from "@octavo/text/files/artifact-file";
import { parseForm } from "@octavo/text/files/bounded-json";
import type { ModelConfig, RopeConfig } from "../program/model-config.js";
import type { ModelFamily } from "../program/model-family.js";
import { modelFamilies } from "../program/registry.js";
import { readExperts } from "./config-experts.js";
import { type ConfigJson, configSchema } from "./config-schema.js";
import { textPart } from "./container-config.js";
import { carries, classStem, readClassifier } from "./model-head.js";
import { checkModelConfig, usablePositions } from "./model-sizes.js";
import { readRopeScaling } from "./rope-config.js";

/**
 * A model's config.json. The dtype comes from the tensors, not from the file's `dtype`.
 * @throws OctavoError `artifact_invalid` or `artifact_unsupported`
 */
export function readConfigJson(path: string, json: unknown, dtype: ModelConfig["dtype"]): ModelConfig {
  const config = parseForm(path, textPart(json)?.json ?? json, configSchema);
  const family = findFamily(path, config);
  const { architecture, defaults, biases } = family;
  const hiddenSize = config.hidden_size ?? defaults.hiddenSize;
  const numLayers = config.num_hidden_layers ?? defaults.numLayers;
  const numHeads = config.num_attention_heads ?? defaults.numHeads;
  const intermediateSize = config.intermediate_size ?? defaults.intermediateSize;
  const headDim = config.head_dim ?? headDimDefault(path, family, config, hiddenSize, numHeads);
  const maxPositionEmbeddings = config.max_position_embeddings ?? defaults.maxPositionEmbeddings;
  const layered = config.rope_parameters ?? undefined;
  const rope = layered?.full_attention ?? layered ?? config.rope_scaling ?? undefined;
  const partial =
    rope?.partial_rotary_factor ?? config.partial_rotary_factor ?? defaults.partialRotaryFactor ?? 1;
  const scaling = readRopeScaling(path, rope, maxPositionEmbeddings, config.original_max_position_embeddings);
  const bias = (rule: boolean | "config", given: boolean | null | undefined): boolean =>
    rule === "config" ? (given ?? false) : rule;

  const globalRope: RopeConfig = {
    theta: rope?.rope_theta ?? config.rope_theta ?? defaults.ropeTheta ?? 10_000,
    rotaryDim: scaling.kind === "proportional" ? headDim : Math.trunc(headDim * partial),
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
    numKvHeads: config.num_key_value_heads ?? kvHeadsDefault(family, config, numHeads),
    headDim,
    rmsNormEps: config.rms_norm_eps ?? defaults.rmsNormEps ?? 1e-6,
    maxPositionEmbeddings: usablePositions(maxPositionEmbeddings, scaling),
    tieWordEmbeddings: config.tie_word_embeddings ?? defaults.tieWordEmbeddings ?? false,
    attentionBias: bias(biases.qkv, config.attention_bias),
    attentionOutputBias: bias(biases.output, config.attention_bias),
    mlpBias: bias(biases.mlp, config.mlp_bias),
    hiddenActivation: readActivation(
      path,
      config.hidden_activation ?? config.hidden_act ?? defaults.hiddenActivation ?? "silu",
    ),
    rope: globalRope,
    ...family.settings?.(path, config, globalRope),
    ...readExperts(path, config, defaults, intermediateSize, numLayers),
    slidingWindows: readWindows(path, config, family, numLayers),
    ...headless(path, config, family),
    dtype,
    bosTokenId: config.bos_token_id === undefined ? defaults.bosTokenId : toIds(config.bos_token_id)[0],
    eosTokenIds: config.eos_token_id === undefined ? toIds(defaults.eosTokenId) : toIds(config.eos_token_id),
  });
}

/** What holds of models that give no text. */
function headless(path: string, config: ConfigJson, family: ModelFamily): Partial<ModelConfig> {
  const classifier = readClassifier(path, config, family);
  const isBidirectional = config.use_bidirectional_attention === true;
  if (classifier === undefined && family.encoder === undefined && !isBidirectional) return {};
  return {
    tieWordEmbeddings: true,
    hasHead: false,
    ...(classifier !== undefined && { classifier }),
    ...(isBidirectional && { encoder: { numTypes: 0, numPositions: 0, firstPosition: 0 } }),
  };
}

/** A token id, a list of them, or nothing, as a list. */
export function toIds(value: number | readonly number[] | null | undefined): readonly number[] {
  if (value === null || value === undefined) return [];
  return typeof value === "number" ? [value] : value;
}

function findFamily(path: string, config: ConfigJson): ModelFamily {
  if (config.architectures?.length === 0) throw artifactInvalid(path, "has an empty list of architectures");
  const name = config.architectures?.[0];
  const { model_type: type } = config;
  const family = modelFamilies.find((candidate) =>
    name === undefined
      ? candidate.modelType === type || candidate.otherModelTypes?.includes(type ?? "") === true
      : classStem(candidate.architecture) === classStem(name) && carries(candidate, name),
  );
  if (family !== undefined) {
    const { use_bidirectional_attention: isBidirectional, is_causal: isCausal } = config;
    if (
      family.encoder === undefined &&
      (isCausal === false || (isBidirectional === true && !family.takesBothDirections))
    )
      throw artifactUnsupported(
        path,
        `has attention in both directions, which is not supported for ${family.architecture}`,
      );
    return family;
  }
  if (name === undefined && typeof type !== "string") {
    throw artifactInvalid(path, "names neither an architecture (architectures) nor a model_type");
  }
  const asked =
    name === undefined
      ? `is of the model_type ${JSON.stringify(type?.slice(0, 100))}`
      : `asks for the architecture ${JSON.stringify(name.slice(0, 100))}`;
  const supported = modelFamilies.map(({ architecture }) => architecture).join(", ");
  throw artifactUnsupported(path, `${asked}; supported are ${supported}`);
}

function headDimDefault(
  path: string,
  { defaults }: ModelFamily,
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
function kvHeadsDefault({ defaults }: ModelFamily, config: ConfigJson, numHeads: number): number {
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

/** `layer_types` decides, else the family's rule. */
function readWindows(
  path: string,
  config: ConfigJson,
  { defaults, hasWindow, windowSize, windowType = "sliding_attention" }: ModelFamily,
  numLayers: number,
): (number | undefined)[] {
  const length = Math.min(Math.max(Math.trunc(numLayers), 0), 1_024);
  const absent = defaults.slidingWindow === undefined ? 4_096 : defaults.slidingWindow;
  const given = (config.sliding_window === undefined ? absent : config.sliding_window) ?? undefined;
  const window = windowSize === undefined ? given : windowSize(config, given);
  if (hasWindow === undefined) return Array.from({ length }, () => undefined);
  const windowed =
    readLayerTypes(path, config, windowType) ??
    Array.from({ length }, (_, layer) => hasWindow(layer, config));
  if (!windowed.includes(true)) return windowed.map(() => undefined);
  if (window === undefined && config.layer_types) {
    throw artifactInvalid(path, "has sliding_attention layers but no sliding_window");
  }
  if (window !== undefined && (!Number.isSafeInteger(window) || window < 1)) {
    throw artifactInvalid(path, `has the sliding window ${window}`);
  }
  return windowed.map((isWindowed) => (isWindowed ? window : undefined));
}

/** Whether each layer has a sliding window, where the file says so. */
function readLayerTypes(
  path: string,
  { layer_types: types }: ConfigJson,
  windowType: string,
): boolean[] | undefined {
  return types?.map((type) => {
    if (type === "full_attention" || type === windowType) return type === windowType;
    throw artifactUnsupported(path, `has a layer of type ${JSON.stringify(type.slice(0, 100))}`);
  });
}
