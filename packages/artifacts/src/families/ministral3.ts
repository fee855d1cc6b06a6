import { artifactInvalid } from "@octavo/text/files/artifact-file";
import type { ConfigJson } from "../config/config-schema.js";
import { readRopeScaling } from "../config/rope-config.js";
import { llamaLayerNames } from "../gguf/names.js";
import { llamaProgram } from "../program/layers.js";
import type { ModelConfig } from "../program/model-config.js";
import type { ModelFamily } from "../program/model-family.js";
import { mistralFamily } from "./mistral.js";

/** What transformers assumes where a file says nothing of the rotation. */
const assumedScaling = {
  rope_type: "yarn",
  factor: 16,
  original_max_position_embeddings: 16_384,
  beta_fast: 32,
  beta_slow: 1,
  mscale: 1,
  mscale_all_dim: 1,
  llama_4_scaling_beta: 0.1,
};

/** Ministral 3: Mistral's layers under YaRN, with queries that grow beyond the original length. */
export const ministral3Family: ModelFamily = {
  ...mistralFamily,
  architecture: "Ministral3ForCausalLM",
  modelType: "ministral3",
  defaults: {
    ...mistralFamily.defaults,
    numLayers: 34,
    headDim: 128,
    vocabSize: 131_072,
    maxPositionEmbeddings: 262_144,
    ropeTheta: 1_000_000,
    rmsNormEps: 1e-5,
    slidingWindow: null,
  },
  settings: (path, config, rope) => {
    const asked = config.rope_parameters ?? config.rope_scaling ?? undefined;
    const positions = config.max_position_embeddings ?? 262_144;
    const scaling = asked === undefined ? readRopeScaling(path, assumedScaling, positions) : rope.scaling;
    return { rope: { ...rope, scaling }, ...queryGrowth(path, config) };
  },
  gguf: {
    architecture: "mistral3",
    layerNames: llamaLayerNames,
    ropeLayout: "interleaved",
    settings: (values, { rope }) => {
      const beta = values.number("attention.temperature_scale") ?? 0;
      const every = values.number("rope.scaling.original_context_length") ?? 16_384;
      if (beta === 0 || rope.scaling.kind !== "yarn") return {};
      // Files hold the mscales, whose quotient is 1 in all published models, as one multiplier.
      const mscale = values.number("rope.scaling.yarn_log_multiplier") ?? 0;
      const scaling = { ...rope.scaling, ...(mscale !== 0 && { attentionFactor: 1 }) };
      return { queryGrowth: { beta, every }, rope: { ...rope, scaling } };
    },
  },
  plan: llamaProgram,
};

function queryGrowth(path: string, config: ConfigJson): Pick<ModelConfig, "queryGrowth"> {
  const parameters = config.rope_parameters ?? config.rope_scaling ?? assumedScaling;
  const beta = parameters.llama_4_scaling_beta ?? 0;
  if (beta === 0) return {};
  const every = parameters.original_max_position_embeddings ?? 0;
  if (!(beta > 0 && Number.isFinite(beta) && Number.isSafeInteger(every) && every > 0)) {
    throw artifactInvalid(path, `has llama_4_scaling_beta ${beta} over ${every} positions`);
  }
  return { queryGrowth: { beta, every } };
}
