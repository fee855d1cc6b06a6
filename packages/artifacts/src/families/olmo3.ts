import { readLocalRope } from "../config/rope-config.js";
import { ggufWindows } from "../gguf/family-settings.js";
import { postNormLayerNames } from "../gguf/names.js";
import type { ModelFamily } from "../program/model-family.js";
import { olmo2Family } from "./olmo2.js";

/** OLMo 3: OLMo 2's layers, three of four with a sliding window; scaling of the rotation holds for the others alone. */
export const olmo3Family: ModelFamily = {
  ...olmo2Family,
  architecture: "Olmo3ForCausalLM",
  modelType: "olmo3",
  defaults: { ...olmo2Family.defaults, ropeTheta: 500_000 },
  hasWindow: (layer) => (layer + 1) % 4 !== 0,
  settings: (path, config, rope) => ({ localRope: readLocalRope(path, config, rope) }),
  gguf: {
    architecture: "olmo2",
    recognises: (values) => (values.number("attention.sliding_window") ?? 0) > 0,
    layerNames: postNormLayerNames,
    ropeLayout: "neox",
    settings: (values, base) => ({
      slidingWindows: ggufWindows(values, base, values.number("attention.sliding_window"), 4),
      localRope: { ...base.rope, scaling: { kind: "none" } },
    }),
    writing: { head: "own", hasWholeHeads: true },
  },
};
