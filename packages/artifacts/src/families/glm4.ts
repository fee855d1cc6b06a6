import { phi3LayerNames } from "../gguf/names.js";
import { decoder } from "../program/layers.js";
import type { ModelFamily } from "../program/model-family.js";

const { attn_qkv: _qkv, ...glmLayerNames } = phi3LayerNames;

/** GLM-4-9B-chat: Llama's layers with gate and up in one tensor, and a rotation of neighbouring pairs in half of each head. */
export const glmFamily: ModelFamily = {
  architecture: "GlmForCausalLM",
  modelType: "glm",
  defaults: {
    hiddenSize: 4_096,
    numLayers: 40,
    numHeads: 32,
    numKvHeads: 2,
    headDim: 128,
    intermediateSize: 13_696,
    vocabSize: 151_552,
    maxPositionEmbeddings: 131_072,
    rmsNormEps: 1.5625e-7,
  },
  biases: { qkv: true, output: false, mlp: false },
  settings: (_path, config, rope) => ({
    attentionBias: config.attention_bias ?? true,
    rope: { ...rope, rotaryDim: partOf(config, rope.rotaryDim), layout: "interleaved" },
  }),
  // Files made from the older code, with q, k and v in one tensor, are refused by that tensor's name.
  gguf: {
    architecture: "chatglm",
    layerNames: glmLayerNames,
    ropeLayout: "interleaved",
    isInterleavedAsTrained: true,
  },
  plan: (builder) =>
    decoder(builder, (layer) => {
      layer.attention();
      layer.gatedMlp({ isFused: true });
    }),
};

/** GLM-4-0414 and GLM-Z1: with norms after the blocks, too. */
export const glm4Family: ModelFamily = {
  ...glmFamily,
  architecture: "Glm4ForCausalLM",
  modelType: "glm4",
  gguf: {
    architecture: "glm4",
    layerNames: {
      ...glmLayerNames,
      post_attention_norm: "post_self_attn_layernorm",
      post_ffw_norm: "post_mlp_layernorm",
    },
    ropeLayout: "interleaved",
    isInterleavedAsTrained: true,
    writing: { head: "own" },
  },
  plan: (builder) =>
    decoder(builder, (layer) => {
      layer.attention({ norms: { before: "input_layernorm", after: "post_self_attn_layernorm" } });
      layer.gatedMlp({
        isFused: true,
        norms: { before: "post_attention_layernorm", after: "post_mlp_layernorm" },
      });
    }),
};

/** Half of each head where the file does not say. */
function partOf(
  config: { readonly partial_rotary_factor?: number | null | undefined; readonly rope_parameters?: unknown },
  rotaryDim: number,
): number {
  const { partial_rotary_factor: own, rope_parameters: parameters } = config;
  const within = (parameters ?? {}) as { readonly partial_rotary_factor?: number | null };
  return typeof (own ?? within.partial_rotary_factor) !== "number" ? Math.trunc(rotaryDim / 2) : rotaryDim;
}
