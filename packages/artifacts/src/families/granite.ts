import type { ConfigJson } from "../config/config-schema.js";
import { positive } from "../config/model-sizes.js";
import { llamaLayerNames } from "../gguf/names.js";
import type { GgufValues } from "../gguf/values.js";
import { f32, type GgufValue } from "../gguf/write-header.js";
import { llamaProgram } from "../program/layers.js";
import type { ModelConfig } from "../program/model-config.js";
import type { GgufBase, ModelFamily } from "../program/model-family.js";
import { llamaFamily } from "./llama.js";

/** Granite 3: Llama's layers with scales of embeddings, residuals, scores and logits (modeling_granite.py). */
export const graniteFamily: ModelFamily = {
  architecture: "GraniteForCausalLM",
  modelType: "granite",
  defaults: llamaFamily.defaults,
  biases: { qkv: "config", output: "config", mlp: "config" },
  settings: graniteScales,
  gguf: {
    architecture: "granite",
    layerNames: llamaLayerNames,
    ropeLayout: "interleaved",
    settings: graniteGgufScales,
    writing: { takesOutputBiases: true, takesRopeFactors: true, metadata: graniteGgufMetadata },
  },
  plan: llamaProgram,
};

export function graniteScales(path: string, config: ConfigJson): Partial<ModelConfig> {
  return {
    embeddingScale: positive(path, "embedding_multiplier", config.embedding_multiplier ?? 1),
    residualScale: positive(path, "residual_multiplier", config.residual_multiplier ?? 1),
    attentionScale: positive(path, "attention_multiplier", config.attention_multiplier ?? 1),
    logitScale: 1 / positive(path, "logits_scaling", config.logits_scaling ?? 1),
  };
}

export function graniteGgufScales(values: GgufValues, { numLayers }: GgufBase): Partial<ModelConfig> {
  const scaleOf = (key: string): number => values.number(key) ?? 0;
  const attentionScale = scaleOf("attention.scale");
  const embeddingScale = scaleOf("embedding_scale");
  const residualScale = scaleOf("residual_scale");
  const logitScale = scaleOf("logit_scale");
  // Granite 4 says in this way that no layer rotates.
  const rotates = values.boolean("rope.scaling.finetuned") ?? true;
  return {
    ...(attentionScale !== 0 && { attentionScale }),
    ...(embeddingScale !== 0 && { embeddingScale }),
    ...(residualScale !== 0 && { residualScale }),
    ...(logitScale !== 0 && { logitScale: 1 / logitScale }),
    ...(!rotates && { layersWithoutRope: Array.from({ length: Math.min(numLayers, 1_024) }, () => true) }),
  };
}

export function graniteGgufMetadata(config: ModelConfig): Record<string, GgufValue> {
  return {
    "attention.scale": f32(config.attentionScale ?? config.headDim ** -0.5),
    embedding_scale: f32(config.embeddingScale ?? 1),
    residual_scale: f32(config.residualScale ?? 1),
    logit_scale: f32(1 / (config.logitScale ?? 1)),
  };
}
