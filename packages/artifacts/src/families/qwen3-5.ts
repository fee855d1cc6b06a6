import { artifactInvalid, artifactUnsupported } from "@octavo/text/files/artifact-file";
import type { ConfigJson } from "../config/config-schema.js";
import { positive } from "../config/model-sizes.js";
import { llamaLayerNames, type LayerNames } from "../gguf/names.js";
import type { GgufValues } from "../gguf/values.js";
import { decoder } from "../program/layers.js";
import type { GatedDeltaConfig, ModelConfig } from "../program/model-config.js";
import { gatedSharedExpertNames } from "../program/mixture-of-experts.js";
import type { ConfigDefaults, GgufBase, ModelFamily } from "../program/model-family.js";
import type { ModelPlan } from "../program/model-plan.js";
import type { ProgramBuilder } from "../program/program-builder.js";
import { checkTaps, gatedDeltaNet, hasAttention } from "../program/recurrent-layers.js";

export const qwen35Defaults: ConfigDefaults = {
  hiddenSize: 4_096,
  numLayers: 32,
  numHeads: 16,
  numKvHeads: 4,
  headDim: 256,
  intermediateSize: 12_288,
  vocabSize: 248_320,
  maxPositionEmbeddings: 32_768,
  partialRotaryFactor: 0.25,
};

export const qwen35LayerNames: LayerNames = {
  ...llamaLayerNames,
  post_attention_norm: "post_attention_layernorm",
  attn_qkv: "linear_attn.in_proj_qkv",
  attn_gate: "linear_attn.in_proj_z",
  ssm_beta: "linear_attn.in_proj_b",
  ssm_alpha: "linear_attn.in_proj_a",
  ssm_conv1d: "linear_attn.conv1d",
  "=ssm_dt.bias": "linear_attn.dt_bias",
  "=ssm_a": "linear_attn.A_log",
  ssm_norm: "linear_attn.norm",
  ssm_out: "linear_attn.out_proj",
};

/** Qwen3.5 and 3.6, dense: three Gated DeltaNet layers, then one of attention with a gate on each head's output. */
export const qwen35Family: ModelFamily = {
  architecture: "Qwen3_5ForCausalLM",
  modelType: "qwen3_5_text",
  defaults: qwen35Defaults,
  biases: { qkv: "config", output: "config", mlp: false },
  settings: (path, config) => ({ normWeightOffset: 1, recurrence: gatedDeltaConfig(path, config) }),
  gguf: {
    architecture: "qwen35",
    layerNames: qwen35LayerNames,
    ropeLayout: "neox",
    settings: gatedDeltaGguf,
  },
  plan: gatedDeltaProgram,
};

/** Gated DeltaNet or gated attention, then an MLP or, where the model has experts, a mixture. */
export function gatedDeltaProgram(builder: ProgramBuilder): ModelPlan {
  const mix = gatedDeltaNet(builder);
  const { experts } = builder.config;
  return decoder(
    builder,
    (layer, index) => {
      if (hasAttention(builder.config, index)) layer.attention({ queryKeyNorm: "head" });
      else layer.mixer(mix);
      if (experts === undefined || experts.denseLayers[index] === true) layer.gatedMlp();
      else layer.experts(gatedSharedExpertNames);
    },
    { hasGatedHeads: true },
  );
}

export function gatedDeltaConfig(path: string, config: ConfigJson): GatedDeltaConfig {
  const size = (name: SizeName, otherwise: number): number => whole(path, name, config[name] ?? otherwise);
  const numLayers = Math.min(config.num_hidden_layers ?? qwen35Defaults.numLayers, 1_024);
  const every = config.full_attention_interval ?? 4;
  const layers =
    config.layer_types?.map((type) => {
      if (type === "linear_attention" || type === "full_attention") return type === "linear_attention";
      throw artifactUnsupported(path, `has a layer of type ${JSON.stringify(type.slice(0, 100))}`);
    }) ?? Array.from({ length: numLayers }, (_, layer) => (layer + 1) % every !== 0);
  return checkHeads(path, {
    kind: "gated_delta_rule",
    layers,
    taps: size("linear_conv_kernel_dim", 4),
    numKeyHeads: size("linear_num_key_heads", 16),
    numHeads: size("linear_num_value_heads", 32),
    keyDim: size("linear_key_head_dim", 128),
    valueDim: size("linear_value_head_dim", 128),
    keyHeads: "grouped",
    rateForm: "log",
  });
}

type SizeName =
  | "linear_conv_kernel_dim"
  | `linear_num_${"key" | "value"}_heads`
  | `linear_${"key" | "value"}_head_dim`;

export function gatedDeltaGguf(values: GgufValues, { numLayers: numBlocks }: GgufBase): Partial<ModelConfig> {
  // Layers that predict further tokens stand behind the model's own.
  const numLayers = numBlocks - (values.number("nextn_predict_layers") ?? 0);
  const every = values.number("full_attention_interval") ?? 4;
  const numHeads = values.needNumber("ssm.time_step_rank");
  const keyDim = values.needNumber("ssm.state_size");
  const listed = values.booleans("attention.recurrent_layers");
  const layers = Array.from(
    { length: Math.min(numLayers, 1_024) },
    (_, layer) => listed?.[layer] ?? (layer + 1) % every !== 0,
  );
  return {
    numLayers,
    slidingWindows: layers.map(() => undefined),
    recurrence: checkHeads(values.path, {
      kind: "gated_delta_rule",
      layers,
      taps: values.needNumber("ssm.conv_kernel"),
      numKeyHeads: values.needNumber("ssm.group_count"),
      numHeads,
      keyDim,
      valueDim: values.needNumber("ssm.inner_size") / numHeads,
      keyHeads: "tiled",
      rateForm: "negative",
    }),
  };
}

/** What the kernels and a slot's size take for granted. */
function checkHeads(path: string, config: GatedDeltaConfig): GatedDeltaConfig {
  const { numHeads, numKeyHeads, keyDim, valueDim, taps } = config;
  whole(path, "value heads' size", valueDim);
  if (numHeads % numKeyHeads !== 0)
    throw artifactInvalid(
      path,
      `has ${numHeads} value heads over ${numKeyHeads} key heads, which must divide them`,
    );
  if (keyDim % 4 !== 0 || keyDim > 1_024 || valueDim > 1_024 || numHeads > 4_096)
    throw artifactInvalid(path, `has ${numHeads} heads of ${keyDim} by ${valueDim} in its linear attention`);
  checkTaps(path, taps);
  return config;
}

function whole(path: string, name: string, value: number): number {
  if (Number.isSafeInteger(positive(path, name, value))) return value;
  throw artifactInvalid(path, `has ${name} ${value}`);
}
