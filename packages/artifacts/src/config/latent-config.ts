import { artifactInvalid } from "@octavo/text/files/artifact-file";
import type { GgufValues } from "../gguf/values.js";
import type { LatentConfig, ModelConfig, RopeConfig } from "../program/model-config.js";
import type { GgufBase } from "../program/model-family.js";
import type { ConfigJson } from "./config-schema.js";

type LatentDefaults = Omit<LatentConfig, "normEps">;

/** transformers' classes give these norms no epsilon, so that they have their own default. */
const normEps = 1e-6;

/**
 * Settings of a family with latent attention, whose config.json says everything by names of its own.
 * @throws OctavoError `artifact_invalid`
 */
export function latentConfig(
  path: string,
  config: ConfigJson,
  rope: RopeConfig,
  defaults: LatentDefaults,
): Partial<ModelConfig> {
  const queryRank = config.q_lora_rank === undefined ? defaults.queryRank : (config.q_lora_rank ?? undefined);
  const latent = checkLatent(path, {
    kvRank: config.kv_lora_rank ?? defaults.kvRank,
    ...(queryRank !== undefined && { queryRank }),
    plainDim: config.qk_nope_head_dim ?? defaults.plainDim,
    rotatedDim: config.qk_rope_head_dim ?? defaults.rotatedDim,
    valueDim: config.v_head_dim ?? defaults.valueDim,
    normEps,
  });
  const { scaling } = rope;
  const sharpness = scaling.kind === "yarn" ? yarnMagnitude(scaling.factor, scaling.mscaleAllDim ?? 0) : 1;
  return {
    ...shapeOfLatent(latent),
    rope: {
      ...rope,
      rotaryDim: latent.rotatedDim,
      layout: config.rope_interleave === false ? "neox" : "interleaved",
    },
    attentionScale: sharpness ** 2 / Math.sqrt(latent.plainDim + latent.rotatedDim),
  };
}

/** The same of a GGUF file. Source: llama.cpp's src/models/deepseek2.cpp. */
export function ggufLatent(
  values: GgufValues,
  { rope, rmsNormEps, numLayers: numBlocks }: GgufBase,
): Partial<ModelConfig> & { readonly numLayers: number } {
  // Layers that predict further tokens stand behind the model's own.
  const numLayers = numBlocks - (values.number("nextn_predict_layers") ?? 0);
  const rotatedDim = values.needNumber("rope.dimension_count");
  const queryRank = values.number("attention.q_lora_rank") ?? 0;
  const whole = values.number("attention.key_length_mla") ?? values.needNumber("attention.key_length");
  const latent = checkLatent(values.path, {
    kvRank: values.needNumber("attention.kv_lora_rank"),
    ...(queryRank > 0 && { queryRank }),
    plainDim: whole - rotatedDim,
    rotatedDim,
    valueDim: values.number("attention.value_length_mla") ?? values.needNumber("attention.value_length"),
    normEps: rmsNormEps,
  });
  const { scaling } = rope;
  // The key holds a tenth of mscale_all_dim; where it is not 0, the factor is of the scores alone.
  const multiplier =
    scaling.kind === "yarn" ? 10 * (values.number("rope.scaling.yarn_log_multiplier") ?? 0) : 0;
  const sharpness = scaling.kind === "yarn" ? yarnMagnitude(scaling.factor, multiplier) : 1;
  return {
    ...shapeOfLatent(latent),
    numLayers,
    slidingWindows: Array.from({ length: Math.min(numLayers, 1_024) }, () => undefined),
    rope: {
      ...rope,
      rotaryDim: rotatedDim,
      ...(scaling.kind === "yarn" && multiplier !== 0 && { scaling: { ...scaling, attentionFactor: 1 } }),
    },
    attentionScale: sharpness ** 2 / Math.sqrt(whole),
  };
}

/** YaRN's factor of sharpness (arXiv 2309.00071), which DeepSeek applies to the scores. */
function yarnMagnitude(factor: number, mscale: number): number {
  return factor > 1 ? 1 + 0.1 * mscale * Math.log(factor) : 1;
}

/** What the cache keeps: one row a token. */
function shapeOfLatent(latent: LatentConfig): Pick<ModelConfig, "latent" | "numKvHeads" | "headDim"> {
  return { latent, numKvHeads: 1, headDim: latent.kvRank + latent.rotatedDim };
}

function checkLatent(path: string, latent: LatentConfig): LatentConfig {
  const { kvRank, queryRank = 1, plainDim, rotatedDim, valueDim } = latent;
  const sizes = {
    kv_lora_rank: kvRank,
    q_lora_rank: queryRank,
    qk_nope_head_dim: plainDim,
    v_head_dim: valueDim,
  };
  for (const [name, size] of Object.entries(sizes))
    if (!Number.isSafeInteger(size) || size < 1 || size > 65_536)
      throw artifactInvalid(path, `has ${name} ${size}; a whole number from 1 to 65536 is needed`);
  if (!Number.isSafeInteger(rotatedDim) || rotatedDim < 2 || rotatedDim % 2 !== 0)
    throw artifactInvalid(path, `has qk_rope_head_dim ${rotatedDim}; an even number is needed`);
  return latent;
}
