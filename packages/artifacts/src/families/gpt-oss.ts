import { artifactUnsupported } from "@octavo/text/files/artifact-file";
import { ggufExperts, ggufWindows } from "../gguf/family-settings.js";
import { expertLayerNames, llamaLayerNames } from "../gguf/names.js";
import { decoder } from "../program/layers.js";
import type { ExpertNames } from "../program/mixture-of-experts.js";
import type { ModelFamily } from "../program/model-family.js";

const expertNames: ExpertNames = {
  router: "mlp.router",
  expert: (index) => ({
    gate: `mlp.experts.${index}.gate_proj`,
    up: `mlp.experts.${index}.up_proj`,
    down: `mlp.experts.${index}.down_proj`,
  }),
  fused: { gateUp: "mlp.experts.gate_up_proj", down: "mlp.experts.down_proj", transposed: "in_turn" },
  biases: { gateUp: "mlp.experts.gate_up_proj_bias", down: "mlp.experts.down_proj_bias" },
};

/**
 * GPT-OSS (arXiv 2508.10925): attention sinks, every other layer with a sliding window, experts with biases and a clamped activation,
 * in MXFP4 as published or in floats as fine-tuned.
 */
export const gptOssFamily: ModelFamily = {
  architecture: "GptOssForCausalLM",
  modelType: "gpt_oss",
  defaults: {
    hiddenSize: 2_880,
    numLayers: 36,
    numHeads: 64,
    numKvHeads: 8,
    headDim: 64,
    intermediateSize: 2_880,
    vocabSize: 201_088,
    maxPositionEmbeddings: 131_072,
    ropeTheta: 150_000,
    rmsNormEps: 1e-5,
    slidingWindow: 128,
    experts: { count: 128, perToken: 4, normalizeWeights: true },
  },
  biases: { qkv: true, output: true, mlp: false },
  hasWindow: (layer) => layer % 2 === 0,
  settings: (path, { swiglu_limit: limit = 7, swiglu_alpha: alpha = 1.702 }) => {
    // The activation's bounds are part of the kernel.
    if (limit === 7 && alpha === 1.702) return { hiddenActivation: "clamped_swiglu" };
    throw artifactUnsupported(
      path,
      `has swiglu_limit ${limit} and swiglu_alpha ${alpha}; 7 and 1.702 are supported`,
    );
  },
  expertNames,
  gguf: {
    architecture: "gpt-oss",
    layerNames: {
      ...llamaLayerNames,
      ...expertLayerNames(expertNames),
      attn_sinks: "self_attn.sinks",
      post_attention_norm: "post_attention_layernorm",
    },
    ropeLayout: "neox",
    settings: (values, base) => ({
      ...ggufExperts(values, base, { normalizeWeights: true, hasOwnSize: true }),
      hiddenActivation: "clamped_swiglu",
      slidingWindows: ggufWindows(values, base, values.number("attention.sliding_window"), 2),
      // The model was trained with unrounded bounds, which a file has no key for.
      ...(base.rope.scaling.kind === "yarn" && {
        rope: { ...base.rope, scaling: { ...base.rope.scaling, truncate: false } },
      }),
    }),
  },
  plan: (builder) =>
    decoder(builder, (layer) => {
      layer.attention({ qkvBias: true, outputBias: true, sinks: true });
      layer.experts(expertNames);
    }),
};
