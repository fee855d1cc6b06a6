import type { ConfigJson } from "../config/config-schema.js";
import { positive } from "../config/model-sizes.js";
import { ggufWindows } from "../gguf/family-settings.js";
import { postNormLayerNames } from "../gguf/names.js";
import { f32, type GgufValue } from "../gguf/write-header.js";
import { decoder } from "../program/layers.js";
import type { ModelConfig } from "../program/model-config.js";
import type { GgufBase, ModelFamily } from "../program/model-family.js";

/**
 * Gemma 2 (arXiv 2408.00118): norms before and after each block, soft-capped scores and logits, every other layer with a sliding
 * window; embeddings times sqrt(hidden size), scores times query_pre_attn_scalar^-1/2 (modeling_gemma2.py).
 */
export const gemma2Family: ModelFamily = {
  architecture: "Gemma2ForCausalLM",
  modelType: "gemma2",
  defaults: {
    hiddenSize: 2_304,
    numLayers: 26,
    numHeads: 8,
    numKvHeads: 4,
    headDim: 256,
    intermediateSize: 9_216,
    vocabSize: 256_000,
    maxPositionEmbeddings: 8_192,
    bosTokenId: 2,
    eosTokenId: 1,
    hiddenActivation: "gelu_pytorch_tanh",
    tieWordEmbeddings: true,
  },
  biases: { qkv: "config", output: "config", mlp: false },
  hasWindow: (layer) => layer % 2 === 0,
  settings: (path, config) => gemmaSettings(path, config, { attention: 50, logits: 30 }),
  gguf: {
    architecture: "gemma2",
    layerNames: postNormLayerNames,
    ropeLayout: "neox",
    settings: (values, base) => ({
      ...gemmaGgufSettings(base, 46),
      slidingWindows: ggufWindows(values, base, values.number("attention.sliding_window") ?? 4_096, 2),
      attentionSoftCap: values.number("attn_logit_softcapping") ?? 50,
      logitSoftCap: values.number("final_logit_softcapping") ?? 30,
    }),
    writing: { head: "embedding", metadata: gemmaGgufMetadata },
  },
  plan: (builder) =>
    decoder(builder, (layer) => {
      layer.attention({ norms: { before: "input_layernorm", after: "post_attention_layernorm" } });
      layer.gatedMlp({ norms: { before: "pre_feedforward_layernorm", after: "post_feedforward_layernorm" } });
    }),
};

/** @param caps those of a config.json that names none; an explicit null turns a cap off */
export function gemmaSettings(
  path: string,
  config: ConfigJson,
  caps: { readonly attention?: number; readonly logits?: number },
): Partial<ModelConfig> {
  const scalar = positive(path, "query_pre_attn_scalar", config.query_pre_attn_scalar ?? 256);
  const capOf = (
    field: "attn_logit_softcapping" | "final_logit_softcapping",
    absent: number | undefined,
  ): number | undefined => {
    const cap = config[field] === undefined ? absent : (config[field] ?? undefined);
    return cap === undefined ? undefined : positive(path, field, cap);
  };
  const attentionSoftCap = capOf("attn_logit_softcapping", caps.attention);
  const logitSoftCap = capOf("final_logit_softcapping", caps.logits);
  return {
    normWeightOffset: 1,
    embeddingScale: Math.sqrt(config.hidden_size ?? 2_304),
    attentionScale: 1 / Math.sqrt(scalar),
    ...(attentionSoftCap !== undefined && { attentionSoftCap }),
    ...(logitSoftCap !== undefined && { logitSoftCap }),
  };
}

/**
 * The converter adds 1 to the norms' weights. Scores are scaled by the head size, but by hidden size / heads in the 27B models, which
 * llama.cpp knows by their number of layers.
 */
export function gemmaGgufSettings(
  { hiddenSize, numHeads, headDim, numLayers }: GgufBase,
  layersOf27B?: number,
): Partial<ModelConfig> {
  return {
    hiddenActivation: "gelu_tanh",
    embeddingScale: Math.sqrt(hiddenSize),
    attentionScale: 1 / Math.sqrt(numLayers === layersOf27B ? Math.trunc(hiddenSize / numHeads) : headDim),
  };
}

export function gemmaGgufMetadata(config: ModelConfig): Record<string, GgufValue> {
  const { attentionSoftCap, logitSoftCap } = config;
  return {
    ...(attentionSoftCap !== undefined && { attn_logit_softcapping: f32(attentionSoftCap) }),
    ...(logitSoftCap !== undefined && { final_logit_softcapping: f32(logitSoftCap) }),
  };
}
