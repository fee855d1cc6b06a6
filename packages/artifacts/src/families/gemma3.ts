import type { ConfigJson } from "../config/config-schema.js";
import { patternLength, positive } from "../config/model-sizes.js";
import { readRopeScaling } from "../config/rope-config.js";
import { ggufWindows } from "../gguf/family-settings.js";
import { postNormLayerNames } from "../gguf/names.js";
import { decoder } from "../program/layers.js";
import type { RopeConfig } from "../program/model-config.js";
import type { ModelFamily } from "../program/model-family.js";
import { gemma2Family, gemmaGgufMetadata, gemmaGgufSettings, gemmaSettings } from "./gemma2.js";

/**
 * Gemma 3, text (arXiv 2503.19786): Gemma 2's layers with each head's q and k normalised, five layers of six with a sliding window
 * and a rotation of their own.
 */
export const gemma3Family: ModelFamily = {
  architecture: "Gemma3ForCausalLM",
  modelType: "gemma3_text",
  defaults: {
    ...gemma2Family.defaults,
    vocabSize: 262_208,
    maxPositionEmbeddings: 131_072,
    ropeTheta: 1_000_000,
  },
  biases: { qkv: "config", output: "config", mlp: false },
  takesBothDirections: true,
  windowSize: ({ use_bidirectional_attention: sees }, given) =>
    given !== undefined && sees === true ? Math.floor(given / 2) + 1 : given,
  hasWindow: (layer, config) => (layer + 1) % patternLength(config, 6) !== 0,
  settings: (path, config, rope) => ({
    ...gemmaSettings(path, config, {}),
    localRope: localRope(path, config, rope),
  }),
  gguf: {
    architecture: "gemma3",
    layerNames: postNormLayerNames,
    ropeLayout: "neox",
    settings: (values, base) => {
      const logitSoftCap = values.number("final_logit_softcapping") ?? 0;
      const theta = values.number("rope.freq_base_swa") ?? 10_000;
      return {
        ...gemmaGgufSettings(base, 62),
        slidingWindows: ggufWindows(values, base, values.number("attention.sliding_window"), 6),
        localRope: { ...base.rope, theta, scaling: { kind: "none" } },
        ...(logitSoftCap > 0 && { logitSoftCap }),
      };
    },
    writing: { metadata: gemmaGgufMetadata },
  },
  plan: (builder) =>
    decoder(builder, (layer) => {
      layer.attention({
        queryKeyNorm: "head",
        norms: { before: "input_layernorm", after: "post_attention_layernorm" },
      });
      layer.gatedMlp({ norms: { before: "pre_feedforward_layernorm", after: "post_feedforward_layernorm" } });
    }),
};

/** Layers with a window rotate by a base of their own and without scaling, unless `rope_parameters` says otherwise. */
function localRope(path: string, config: ConfigJson, rope: RopeConfig): RopeConfig {
  const parameters = config.rope_parameters?.sliding_attention ?? undefined;
  const theta = parameters?.rope_theta ?? config.rope_local_base_freq ?? 10_000;
  const scaling = readRopeScaling(path, parameters, config.max_position_embeddings ?? 131_072, undefined);
  return { ...rope, theta: positive(path, "rope_local_base_freq", theta), scaling };
}
