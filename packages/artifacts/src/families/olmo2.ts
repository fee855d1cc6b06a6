import { postNormLayerNames } from "../gguf/names.js";
import { decoder } from "../program/layers.js";
import type { ModelFamily } from "../program/model-family.js";

/** OLMo 2 (arXiv 2501.00656): norms after the blocks alone, and of q and k over all heads. */
export const olmo2Family: ModelFamily = {
  architecture: "Olmo2ForCausalLM",
  modelType: "olmo2",
  defaults: {
    hiddenSize: 4_096,
    numLayers: 32,
    numHeads: 32,
    intermediateSize: 11_008,
    vocabSize: 50_304,
    maxPositionEmbeddings: 2_048,
    eosTokenId: 50_279,
    rmsNormEps: 1e-5,
  },
  biases: { qkv: "config", output: "config", mlp: false },
  gguf: {
    architecture: "olmo2",
    layerNames: postNormLayerNames,
    ropeLayout: "neox",
    writing: { head: "own", hasWholeHeads: true },
  },
  plan: (builder) =>
    decoder(builder, (layer) => {
      layer.attention({ queryKeyNorm: "whole", norms: { after: "post_attention_layernorm" } });
      layer.gatedMlp({ norms: { after: "post_feedforward_layernorm" } });
    }),
};
