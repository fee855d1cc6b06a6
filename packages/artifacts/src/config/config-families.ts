import type { ModelConfig, RopeConfig } from "../program/model-config.js";
import { artifactInvalid, artifactUnsupported } from "@octavo/text/files/artifact-file";
import type { ConfigJson } from "./config-json.js";
import { readRopeScaling } from "./rope-config.js";

/** Settings that only some families have, with the defaults of their config classes in transformers. */
export function familySettings(
  path: string,
  architecture: string,
  config: ConfigJson,
  rope: RopeConfig,
): Partial<ModelConfig> {
  switch (architecture) {
    case "Gemma2ForCausalLM":
      return gemma(path, config, { attention: 50, logits: 30 });
    case "Gemma3ForCausalLM":
      return { ...gemma(path, config, {}), localRope: localRope(path, config, rope) };
    case "GraniteForCausalLM":
    case "GraniteMoeForCausalLM":
      return granite(path, config);
    case "SmolLM3ForCausalLM":
      return { layersWithoutRope: withoutRope(config) };
    case "Qwen2MoeForCausalLM":
      return { attentionBias: config.qkv_bias ?? true };
    case "GptOssForCausalLM":
      return gptOss(path, config);
    case "OlmoeForCausalLM":
      if (typeof config.clip_qkv === "number") {
        throw artifactUnsupported(
          path,
          `has clip_qkv ${config.clip_qkv}; queries, keys and values are not clipped here`,
        );
      }
      return {};
    default:
      return {};
  }
}

/** modeling_gemma2.py, modeling_gemma3.py: embeddings times sqrt(hidden size), scores by query_pre_attn_scalar^-1/2. */
function gemma(
  path: string,
  config: ConfigJson,
  caps: { readonly attention?: number; readonly logits?: number },
): Partial<ModelConfig> {
  const scalar = positive(path, "query_pre_attn_scalar", config.query_pre_attn_scalar ?? 256);
  const attentionSoftCap = capOf(
    path,
    "attn_logit_softcapping",
    config.attn_logit_softcapping,
    caps.attention,
  );
  const logitSoftCap = capOf(path, "final_logit_softcapping", config.final_logit_softcapping, caps.logits);
  return {
    normWeightOffset: 1,
    embeddingScale: Math.sqrt(config.hidden_size ?? 2_304),
    attentionScale: 1 / Math.sqrt(scalar),
    ...(attentionSoftCap !== undefined && { attentionSoftCap }),
    ...(logitSoftCap !== undefined && { logitSoftCap }),
  };
}

/** An explicit null turns a cap off. */
function capOf(
  path: string,
  field: string,
  given: number | null | undefined,
  absent: number | undefined,
): number | undefined {
  const cap = given === undefined ? absent : (given ?? undefined);
  return cap === undefined ? undefined : positive(path, field, cap);
}

/** Layers with a window rotate by a base of their own and without scaling, unless `rope_parameters` says otherwise. */
function localRope(path: string, config: ConfigJson, rope: RopeConfig): RopeConfig {
  const parameters = config.rope_parameters?.sliding_attention ?? undefined;
  const theta = parameters?.rope_theta ?? config.rope_local_base_freq ?? 10_000;
  const scaling = readRopeScaling(path, parameters, config.max_position_embeddings ?? 131_072, undefined);
  return { ...rope, theta: positive(path, "rope_local_base_freq", theta), scaling };
}

/** modeling_granite.py */
function granite(path: string, config: ConfigJson): Partial<ModelConfig> {
  return {
    embeddingScale: positive(path, "embedding_multiplier", config.embedding_multiplier ?? 1),
    residualScale: positive(path, "residual_multiplier", config.residual_multiplier ?? 1),
    attentionScale: positive(path, "attention_multiplier", config.attention_multiplier ?? 1),
    logitScale: 1 / positive(path, "logits_scaling", config.logits_scaling ?? 1),
  };
}

/** The activation's bounds are part of the kernel. */
function gptOss(path: string, config: ConfigJson): Partial<ModelConfig> {
  const { swiglu_limit: limit = 7, swiglu_alpha: alpha = 1.702 } = config;
  if (limit !== 7 || alpha !== 1.702) {
    throw artifactUnsupported(
      path,
      `has swiglu_limit ${limit} and swiglu_alpha ${alpha}; 7 and 1.702 are supported`,
    );
  }
  return { hiddenActivation: "clamped_swiglu" };
}

/** no_rope_layers holds 1 for layers that rotate; absent, every fourth one does not. */
function withoutRope(config: ConfigJson): boolean[] {
  if (config.no_rope_layers) return config.no_rope_layers.map((rotates) => rotates === 0);
  const interval = config.no_rope_layer_interval ?? 4;
  const numLayers = Math.min(Math.max(Math.trunc(config.num_hidden_layers ?? 36), 0), 1_024);
  return Array.from({ length: numLayers }, (_, layer) => (layer + 1) % interval === 0);
}

function positive(path: string, field: string, value: number): number {
  if (value > 0 && Number.isFinite(value)) return value;
  throw artifactInvalid(path, `has ${field} ${value}; a positive number is needed`);
}
