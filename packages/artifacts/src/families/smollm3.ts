import type { ConfigJson } from "../config/config-schema.js";
import { llamaLayerNames } from "../gguf/names.js";
import { llamaProgram } from "../program/layers.js";
import type { ModelFamily } from "../program/model-family.js";

/** SmolLM3: Llama's layers, every fourth without rotation; those alone may have a sliding window. */
export const smolLm3Family: ModelFamily = {
  architecture: "SmolLM3ForCausalLM",
  modelType: "smollm3",
  defaults: {
    hiddenSize: 2_048,
    numLayers: 36,
    numHeads: 16,
    numKvHeads: 4,
    intermediateSize: 11_008,
    vocabSize: 128_256,
    maxPositionEmbeddings: 32_768,
    bosTokenId: 128_000,
    eosTokenId: 128_001,
    ropeTheta: 2_000_000,
    tieWordEmbeddings: true,
    slidingWindow: null,
  },
  biases: { qkv: "config", output: "config", mlp: "config" },
  hasWindow: (layer, config) => config.use_sliding_window === true && withoutRope(config)[layer] === true,
  settings: (_, config) => ({ layersWithoutRope: withoutRope(config) }),
  gguf: {
    architecture: "smollm3",
    layerNames: llamaLayerNames,
    ropeLayout: "interleaved",
    settings: (_, { numLayers }) => ({ layersWithoutRope: everyNthLayer(numLayers, 4) }),
    writing: {},
  },
  plan: llamaProgram,
};

/** no_rope_layers holds 1 for layers that rotate; absent, every fourth one does not. */
function withoutRope(config: ConfigJson): boolean[] {
  if (config.no_rope_layers) return config.no_rope_layers.map((rotates) => rotates === 0);
  return everyNthLayer(config.num_hidden_layers ?? 36, config.no_rope_layer_interval ?? 4);
}

function everyNthLayer(numLayers: number, interval: number): boolean[] {
  const length = Math.min(Math.max(Math.trunc(numLayers), 0), 1_024);
  return Array.from({ length }, (_, layer) => (layer + 1) % interval === 0);
}
