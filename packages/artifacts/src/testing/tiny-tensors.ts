import type { WeightType } from "@octavo/kernels";
import type { TensorInfo } from "../checkpoint/checkpoint.js";
import type { ModelConfig } from "../program/model-config.js";

/** A llama-shaped configuration with mixed window sizes, small enough to list its tensors. */
export const tinyConfig: ModelConfig = {
  architecture: "LlamaForCausalLM",
  vocabSize: 40,
  hiddenSize: 16,
  intermediateSize: 24,
  numLayers: 2,
  numHeads: 4,
  numKvHeads: 2,
  headDim: 4,
  rmsNormEps: 1e-5,
  maxPositionEmbeddings: 64,
  tieWordEmbeddings: false,
  attentionBias: false,
  attentionOutputBias: false,
  mlpBias: false,
  hiddenActivation: "silu",
  rope: { theta: 10000, rotaryDim: 4, layout: "neox", scaling: { kind: "none" } },
  slidingWindows: [undefined, 8],
  dtype: "f32",
  bosTokenId: undefined,
  eosTokenIds: [],
};

export function tensorInfo(name: string, shape: readonly number[], type: WeightType = "f32"): TensorInfo {
  return {
    name,
    type,
    shape,
    path: "model.safetensors",
    offset: 0,
    byteLength: 4 * shape.reduce((a, b) => a * b, 1),
  };
}

/** The tensors that a checkpoint of this configuration has. */
export function tensorsOf(
  model: ModelConfig,
  types: Readonly<Record<string, WeightType>> = {},
): Map<string, TensorInfo> {
  const { hiddenSize, intermediateSize, headDim } = model;
  const q = model.numHeads * headDim;
  const kv = model.numKvHeads * headDim;
  const shapes: Record<string, readonly number[]> = {
    "model.embed_tokens.weight": [model.vocabSize, hiddenSize],
    "model.norm.weight": [hiddenSize],
    ...(!model.tieWordEmbeddings && { "lm_head.weight": [model.vocabSize, hiddenSize] }),
  };
  for (let layer = 0; layer < model.numLayers; layer++) {
    const prefix = `model.layers.${layer}`;
    Object.assign(shapes, {
      [`${prefix}.input_layernorm.weight`]: [hiddenSize],
      [`${prefix}.post_attention_layernorm.weight`]: [hiddenSize],
      [`${prefix}.self_attn.q_proj.weight`]: [q, hiddenSize],
      [`${prefix}.self_attn.k_proj.weight`]: [kv, hiddenSize],
      [`${prefix}.self_attn.v_proj.weight`]: [kv, hiddenSize],
      [`${prefix}.self_attn.o_proj.weight`]: [hiddenSize, q],
      [`${prefix}.mlp.gate_proj.weight`]: [intermediateSize, hiddenSize],
      [`${prefix}.mlp.up_proj.weight`]: [intermediateSize, hiddenSize],
      [`${prefix}.mlp.down_proj.weight`]: [hiddenSize, intermediateSize],
    });
    if (model.architecture === "Qwen2ForCausalLM") {
      for (const [part, rows] of [
        ["q", q],
        ["k", kv],
        ["v", kv],
      ] as const)
        shapes[`${prefix}.self_attn.${part}_proj.bias`] = [rows];
    }
    if (model.architecture === "Qwen3ForCausalLM") {
      for (const part of ["q", "k"]) shapes[`${prefix}.self_attn.${part}_norm.weight`] = [headDim];
    }
  }
  return new Map(Object.entries(shapes).map(([name, shape]) => [name, tensorInfo(name, shape, types[name])]));
}
