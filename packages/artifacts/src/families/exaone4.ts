import type { ConfigJson } from "../config/config-schema.js";
import { patternLength } from "../config/model-sizes.js";
import { ggufWindows } from "../gguf/family-settings.js";
import { postNormLayerNames } from "../gguf/names.js";
import { decoder } from "../program/layers.js";
import type { ModelFamily } from "../program/model-family.js";

/** With windows, llama.cpp knows the architecture in this size alone. */
const layersOf32B = 64;

/**
 * EXAONE 4 (arXiv 2507.11407): norms after the blocks, and of each head's q and k; layers with full attention rotate only where none
 * has a window.
 */
export const exaone4Family: ModelFamily = {
  architecture: "Exaone4ForCausalLM",
  modelType: "exaone4",
  defaults: {
    hiddenSize: 4_096,
    numLayers: 32,
    numHeads: 32,
    numKvHeads: 32,
    intermediateSize: 16_384,
    vocabSize: 102_400,
    maxPositionEmbeddings: 2_048,
    bosTokenId: 0,
    eosTokenId: 2,
    rmsNormEps: 1e-5,
  },
  biases: { qkv: false, output: false, mlp: false },
  hasWindow: isLocal,
  settings: (_, config) => {
    const types = config.layer_types;
    const numLayers = Math.min(Math.max(Math.trunc(config.num_hidden_layers ?? 32), 0), 1_024);
    if (config.sliding_window === null) return {};
    const isFull = (layer: number): boolean =>
      types ? types[layer] === "full_attention" : !isLocal(layer, config);
    return { layersWithoutRope: Array.from({ length: numLayers }, (_layer, layer) => isFull(layer)) };
  },
  gguf: {
    architecture: "exaone4",
    layerNames: postNormLayerNames,
    ropeLayout: "neox",
    settings: (values, base) => {
      if (base.numLayers !== layersOf32B) return { slidingWindows: base.slidingWindows.map(() => undefined) };
      const window = values.number("attention.sliding_window") ?? 4_096;
      const slidingWindows = ggufWindows(values, base, window, 4);
      return { slidingWindows, layersWithoutRope: slidingWindows.map((one) => one === undefined) };
    },
    writing: { hasWholeHeads: true, takesRopeFactors: true },
  },
  plan: (builder) =>
    decoder(builder, (layer) => {
      layer.attention({ queryKeyNorm: "head", norms: { after: "post_attention_layernorm" } });
      layer.gatedMlp({ norms: { after: "post_feedforward_layernorm" } });
    }),
};

function isLocal(layer: number, config: ConfigJson): boolean {
  const { sliding_window_pattern: pattern, sliding_window: window } = config;
  if (window === null) return false;
  if (typeof pattern !== "string") return (layer + 1) % patternLength(config, 4) !== 0;
  const isLast = layer === (config.num_hidden_layers ?? 32) - 1;
  return !isLast && pattern[layer % pattern.length] === "L";
}
