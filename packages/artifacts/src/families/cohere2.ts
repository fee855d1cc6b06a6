import type { ConfigJson } from "../config/config-schema.js";
import { patternLength, positive } from "../config/model-sizes.js";
import { ggufWindows } from "../gguf/family-settings.js";
import { llamaLayerNames } from "../gguf/names.js";
import { decoder } from "../program/layers.js";
import type { ModelFamily } from "../program/model-family.js";

/**
 * Command R7B and Command A (Cohere 2, arXiv 2504.00698): layer norms, attention and MLP of one input, scaled logits; three layers of
 * four have a window and rotate, the others see everything and do not.
 */
export const cohere2Family: ModelFamily = {
  architecture: "Cohere2ForCausalLM",
  modelType: "cohere2",
  defaults: {
    hiddenSize: 8_192,
    numLayers: 40,
    numHeads: 64,
    intermediateSize: 22_528,
    vocabSize: 256_000,
    maxPositionEmbeddings: 8_192,
    bosTokenId: 5,
    eosTokenId: 255_001,
    tieWordEmbeddings: true,
  },
  biases: { qkv: "config", output: "config", mlp: false },
  hasWindow: isLocal,
  settings: (path, config, rope) => {
    const numLayers = Math.min(Math.max(Math.trunc(config.num_hidden_layers ?? 40), 0), 1_024);
    const isFull = (layer: number): boolean =>
      config.layer_types ? config.layer_types[layer] === "full_attention" : !isLocal(layer, config);
    return {
      normKind: "layer",
      rmsNormEps: config.layer_norm_eps ?? 1e-5,
      logitScale: positive(path, "logit_scale", config.logit_scale ?? 0.0625),
      rope: { ...rope, layout: "interleaved" },
      layersWithoutRope: Array.from({ length: numLayers }, (_, layer) => isFull(layer)),
    };
  },
  gguf: {
    architecture: "cohere2",
    layerNames: llamaLayerNames,
    ropeLayout: "interleaved",
    isInterleavedAsTrained: true,
    settings: (values, base) => {
      const slidingWindows = ggufWindows(values, base, values.number("attention.sliding_window") ?? 4_096, 4);
      return {
        normKind: "layer",
        rmsNormEps: values.number("attention.layer_norm_epsilon") ?? 1e-5,
        logitScale: values.number("logit_scale") ?? 0.0625,
        slidingWindows,
        layersWithoutRope: slidingWindows.map((window) => window === undefined),
      };
    },
  },
  plan: (builder) => decoder(builder, (layer) => layer.parallel()),
};

function isLocal(layer: number, config: ConfigJson): boolean {
  return (layer + 1) % patternLength(config, 4) !== 0;
}
