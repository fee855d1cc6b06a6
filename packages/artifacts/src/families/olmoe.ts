import { positive } from "../config/model-sizes.js";
import { ggufExperts } from "../gguf/family-settings.js";
import { expertLayerNames, llamaLayerNames } from "../gguf/names.js";
import { decoder } from "../program/layers.js";
import { qwenExpertNames } from "../program/mixture-of-experts.js";
import type { ModelFamily } from "../program/model-family.js";

/** OLMoE (arXiv 2409.02060): q and k are normalised over all heads; many small experts. */
export const olmoeFamily: ModelFamily = {
  architecture: "OlmoeForCausalLM",
  modelType: "olmoe",
  defaults: {
    hiddenSize: 2_048,
    numLayers: 16,
    numHeads: 16,
    intermediateSize: 2_048,
    vocabSize: 50_304,
    maxPositionEmbeddings: 4_096,
    eosTokenId: 50_279,
    rmsNormEps: 1e-5,
    experts: { count: 64, perToken: 8, normalizeWeights: { absent: false } },
  },
  biases: { qkv: "config", output: "config", mlp: false },
  settings: (path, { clip_qkv: clip }) =>
    typeof clip === "number" ? { attentionClip: positive(path, "clip_qkv", clip) } : {},
  expertNames: qwenExpertNames,
  gguf: {
    architecture: "olmoe",
    layerNames: { ...llamaLayerNames, ...expertLayerNames(qwenExpertNames) },
    ropeLayout: "neox",
    settings: (values, base) => ({
      ...ggufExperts(values, base, { normalizeWeights: false }),
      ...((values.number("attention.clamp_kqv") ?? 0) > 0 && {
        attentionClip: values.number("attention.clamp_kqv") ?? 0,
      }),
    }),
    writing: { head: "own", hasWholeHeads: true },
  },
  plan: (builder) =>
    decoder(builder, (layer) => {
      layer.attention({ queryKeyNorm: "whole" });
      layer.experts(qwenExpertNames);
    }),
};
