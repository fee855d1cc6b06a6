import { artifactUnsupported } from "@octavo/text/files/artifact-file";
import type { ConfigJson } from "../config/config-schema.js";
import type { LayerNames } from "../gguf/names.js";
import type { GgufValues } from "../gguf/values.js";
import type { DecoderNames } from "../program/layer-shape.js";
import { decoder } from "../program/layers.js";
import type { ExpertNames } from "../program/mixture-of-experts.js";
import type { ModelConfig } from "../program/model-config.js";
import type { ConfigDefaults, GgufBase, ModelFamily } from "../program/model-family.js";
import type { ModelPlan } from "../program/model-plan.js";
import type { ProgramBuilder } from "../program/program-builder.js";
import { checkTaps, hasAttention, shortConvolution } from "../program/recurrent-layers.js";

export const lfm2Defaults: ConfigDefaults = {
  hiddenSize: 2_560,
  numLayers: 32,
  numHeads: 32,
  numKvHeads: 8,
  intermediateSize: 12_288,
  vocabSize: 65_536,
  maxPositionEmbeddings: 128_000,
  ropeTheta: 1_000_000,
  bosTokenId: 1,
  eosTokenId: 2,
};

const names: Partial<DecoderNames> = {
  finalNorm: "model.embedding_norm",
  firstNorm: "operator_norm",
  secondNorm: "ffn_norm",
  queryNorm: "q_layernorm",
  keyNorm: "k_layernorm",
  output: "out_proj",
  gate: "feed_forward.w1",
  up: "feed_forward.w3",
  down: "feed_forward.w2",
};

export const lfm2LayerNames: LayerNames = {
  "@token_embd_norm.weight": "model.embedding_norm.weight",
  "@output_norm.weight": "model.embedding_norm.weight",
  attn_norm: "operator_norm",
  attn_q: "self_attn.q_proj",
  attn_k: "self_attn.k_proj",
  attn_v: "self_attn.v_proj",
  attn_output: "self_attn.out_proj",
  attn_q_norm: "self_attn.q_layernorm",
  attn_k_norm: "self_attn.k_layernorm",
  ffn_norm: "ffn_norm",
  ffn_gate: "feed_forward.w1",
  ffn_up: "feed_forward.w3",
  ffn_down: "feed_forward.w2",
  "=shortconv.in_proj.weight": "conv.in_proj.weight",
  "=shortconv.in_proj.bias": "conv.in_proj.bias",
  "=shortconv.conv.weight": "conv.conv.weight",
  "=shortconv.conv.bias": "conv.conv.bias",
  "=shortconv.out_proj.weight": "conv.out_proj.weight",
  "=shortconv.out_proj.bias": "conv.out_proj.bias",
};

/** LFM2: gated short convolutions, and attention every few layers. */
export const lfm2Family: ModelFamily = {
  architecture: "Lfm2ForCausalLM",
  modelType: "lfm2",
  defaults: lfm2Defaults,
  biases: { qkv: false, output: false, mlp: false },
  settings: (path, config) => ({ ...lfm2Settings(path, config), intermediateSize: adjustedSize(config) }),
  gguf: { architecture: "lfm2", layerNames: lfm2LayerNames, ropeLayout: "neox", settings: lfm2Gguf },
  plan: (builder) => lfm2Program(builder),
};

export function lfm2Program(builder: ProgramBuilder, expertNames?: ExpertNames): ModelPlan {
  const mix = shortConvolution(builder);
  const { experts } = builder.config;
  return decoder(
    builder,
    (layer, index) => {
      if (hasAttention(builder.config, index)) layer.attention({ queryKeyNorm: "head" });
      else layer.mixer(mix);
      if (expertNames === undefined || experts?.denseLayers[index] === true) layer.gatedMlp();
      else layer.experts(expertNames);
    },
    { names },
  );
}

export function lfm2Settings(path: string, config: ConfigJson): Partial<ModelConfig> {
  const numLayers = Math.min(config.num_hidden_layers ?? lfm2Defaults.numLayers, 1_024);
  const attends = new Set(config.full_attn_idxs ?? Array.from({ length: numLayers }, (_, layer) => layer));
  const layers =
    config.layer_types?.map((type) => {
      if (type === "conv" || type === "full_attention") return type === "conv";
      throw artifactUnsupported(path, `has a layer of type ${JSON.stringify(type.slice(0, 100))}`);
    }) ?? Array.from({ length: numLayers }, (_, layer) => !attends.has(layer));
  return {
    rmsNormEps: config.norm_eps ?? 1e-5,
    tieWordEmbeddings: config.tie_embedding ?? config.tie_word_embeddings ?? true,
    recurrence: {
      kind: "short_convolution",
      layers,
      taps: checkTaps(path, config.conv_L_cache ?? 3),
      hasBias: config.conv_bias ?? false,
    },
  };
}

/** Two thirds of the size that config.json gives, times a factor, rounded up to a multiple; as modeling_lfm2.py computes it. */
function adjustedSize(config: ConfigJson): number {
  const size = config.block_ff_dim ?? config.intermediate_size ?? lfm2Defaults.intermediateSize;
  if (config.block_auto_adjust_ff_dim === false) return size;
  const multiple = config.block_multiple_of ?? 256;
  const { block_ffn_dim_multiplier: factor = 1 } = config;
  const twoThirds = Math.trunc((2 * size) / 3);
  return factor === null ? twoThirds : multiple * Math.ceil(Math.trunc(factor * twoThirds) / multiple);
}

export function lfm2Gguf(values: GgufValues, { numLayers }: GgufBase): Partial<ModelConfig> {
  const numKvHeads = values.numbers("attention.head_count_kv");
  return {
    recurrence: {
      kind: "short_convolution",
      layers: Array.from({ length: Math.min(numLayers, 1_024) }, (_, layer) => numKvHeads?.[layer] === 0),
      taps: checkTaps(values.path, values.needNumber("shortconv.l_cache")),
      hasBias: false,
    },
  };
}
