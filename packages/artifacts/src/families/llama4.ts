import { artifactInvalid } from "@octavo/text/files/artifact-file";
import type { ConfigJson } from "../config/config-schema.js";
import { positive } from "../config/model-sizes.js";
import { ggufExperts, ggufWindows } from "../gguf/family-settings.js";
import { expertLayerNames, llamaLayerNames } from "../gguf/names.js";
import type { GgufValues } from "../gguf/values.js";
import { decoder } from "../program/layers.js";
import type { ExpertNames } from "../program/mixture-of-experts.js";
import type { ModelConfig } from "../program/model-config.js";
import type { ConfigDefaults, ExpertRouting, GgufBase, ModelFamily } from "../program/model-family.js";

const chunkSize = 8_192;
const layersPerPlain = 4;

const routing: ExpertRouting = { scoring: "sigmoid", weighsInput: true };

const defaults = {
  hiddenSize: 5_120,
  numLayers: 48,
  numHeads: 40,
  numKvHeads: 8,
  headDim: 128,
  intermediateSize: 8_192,
  vocabSize: 202_048,
  maxPositionEmbeddings: 131_072,
  bosTokenId: 1,
  eosTokenId: 2,
  ropeTheta: 500_000,
  rmsNormEps: 1e-5,
  experts: {
    count: 16,
    perToken: 1,
    sharedIntermediateSize: 8_192,
    sharedSize: (config) => config.intermediate_size ?? 8_192,
    normalizeWeights: false,
    isAbsent: ({ num_local_experts: count, moe_layers: layers }) => count === 0 || layers?.length === 0,
    routing: () => routing,
  },
} as const satisfies ConfigDefaults;

const expertNames: ExpertNames = {
  router: "feed_forward.router",
  expert: (index) => ({
    gate: `feed_forward.experts.${index}.gate_proj`,
    up: `feed_forward.experts.${index}.up_proj`,
    down: `feed_forward.experts.${index}.down_proj`,
  }),
  fused: {
    gateUp: "feed_forward.experts.gate_up_proj",
    down: "feed_forward.experts.down_proj",
    transposed: "gate_first",
  },
  shared: { mlp: "feed_forward.shared_expert" },
};

const mlpNames = {
  gate: "feed_forward.gate_proj",
  up: "feed_forward.up_proj",
  down: "feed_forward.down_proj",
} as const;

/**
 * Llama 4, text (modeling_llama4.py): layers that rotate see the tokens of their chunk alone and normalise queries and keys behind the
 * rotation; every fourth layer does not rotate and sees everything, with queries that grow with their position. Experts are weighed by
 * the sigmoid of their scores before they read, beside one that every token goes to; some models have them in some layers.
 */
export const llama4Family: ModelFamily = {
  architecture: "Llama4ForCausalLM",
  modelType: "llama4_text",
  defaults,
  biases: { qkv: "config", output: "config", mlp: false },
  hasWindow: (layer, config) => !withoutRope(config)[layer],
  windowType: "chunked_attention",
  windowSize: ({ attention_chunk_size: size }) => (size === undefined ? chunkSize : (size ?? undefined)),
  settings: llama4Settings,
  expertNames,
  gguf: {
    architecture: "llama4",
    layerNames: {
      ...llamaLayerNames,
      ...expertLayerNames(expertNames),
      ffn_gate: mlpNames.gate,
      ffn_up: mlpNames.up,
      ffn_down: mlpNames.down,
    },
    ropeLayout: "interleaved",
    isInterleavedAsTrained: true,
    settings: llama4GgufSettings,
  },
  plan: (builder) => {
    const { experts, hasQueryKeyNorm } = builder.config;
    return decoder(
      builder,
      (layer, index) => {
        layer.attention({ rotatedNorm: hasQueryKeyNorm });
        if (experts === undefined || experts.denseLayers[index] === true) layer.gatedMlp();
        else layer.experts(expertNames);
      },
      { names: mlpNames },
    );
  },
};

function llama4Settings(path: string, config: ConfigJson, rope: ModelConfig["rope"]): Partial<ModelConfig> {
  const layersWithoutRope = withoutRope(config);
  const isChunked = config.layer_types?.includes("chunked_attention") ?? layersWithoutRope.includes(false);
  if (isChunked && config.attention_chunk_size === null)
    throw artifactInvalid(path, "has layers that attend within chunks, but no attention_chunk_size");
  return {
    intermediateSize: config.intermediate_size_mlp ?? 16_384,
    rope: { ...rope, layout: "interleaved" },
    windowsAreChunks: true,
    layersWithoutRope,
    hasQueryKeyNorm: config.use_qk_norm ?? true,
    ...(Boolean(config.attn_temperature_tuning ?? true) && {
      queryGrowth: plainGrowth(
        positive(path, "attn_scale", config.attn_scale ?? 0.1),
        positive(path, "floor_scale", config.floor_scale ?? chunkSize),
      ),
    }),
  };
}

/** The numbers that no file says are llama.cpp's (src/models/llama4.cpp). */
function llama4GgufSettings(values: GgufValues, base: GgufBase): Partial<ModelConfig> {
  const { numLayers } = base;
  const seesAll = values.number("attention.sliding_window") === 0;
  const step = values.needNumber("interleave_moe_layer_step");
  const count = values.number("expert_count") ?? 0;
  return {
    windowsAreChunks: true,
    slidingWindows: ggufWindows(values, base, seesAll ? 0 : chunkSize, layersPerPlain),
    ...(!seesAll && {
      layersWithoutRope: everyNth(numLayers, layersPerPlain),
      queryGrowth: plainGrowth(0.1, chunkSize),
    }),
    hasQueryKeyNorm: count !== 128,
    ...(count > 0 && { experts: ggufMixture(values, base, step) }),
  };
}

function ggufMixture(values: GgufValues, base: GgufBase, step: number): NonNullable<ModelConfig["experts"]> {
  const kind = { normalizeWeights: false, hasOwnSize: true, isShared: true, routing } as const;
  const read = ggufExperts(values, base, kind).experts;
  const { intermediateSize } = read;
  const isMixture = step > 0 ? everyNth(base.numLayers, step) : [];
  return {
    ...read,
    sharedIntermediateSize: intermediateSize,
    denseLayers: read.denseLayers.map((_, layer) => isMixture[layer] !== true),
  };
}

function plainGrowth(beta: number, every: number): NonNullable<ModelConfig["queryGrowth"]> {
  return { beta, every, offset: 1, isWithoutRope: true };
}

/** no_rope_layers holds 1 for layers that rotate, and may be longer; absent or empty, every fourth one does not. */
function withoutRope(config: ConfigJson): boolean[] {
  const { no_rope_layers: given, no_rope_layer_interval: interval } = config;
  const layers = everyNth(config.num_hidden_layers ?? defaults.numLayers, interval ?? layersPerPlain);
  return given && given.length > 0 ? given.slice(0, layers.length).map((rotates) => rotates === 0) : layers;
}

function everyNth(numLayers: number, interval: number): boolean[] {
  const length = Math.min(Math.max(Math.trunc(numLayers), 0), 1_024);
  return Array.from({ length }, (_, layer) => (layer + 1) % interval === 0);
}
