import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { BenchShape } from "./shapes.js";

const architectures = {
  llama: { architecture: "LlamaForCausalLM", modelType: "llama" },
  qwen2: { architecture: "Qwen2ForCausalLM", modelType: "qwen2" },
  gemma3: { architecture: "Gemma3ForCausalLM", modelType: "gemma3_text" },
  qwen35: { architecture: "Qwen3_5ForCausalLM", modelType: "qwen3_5_text" },
} as const;

/** Beside a model file: its shape as a config.json, for peers that draw the weights themselves. */
export function configFolderOf(modelPath: string): string {
  return `${modelPath}.config`;
}

export function writeConfig(modelPath: string, shape: BenchShape): void {
  const folder = configFolderOf(modelPath);
  mkdirSync(folder, { recursive: true });
  const { architecture, modelType } = architectures[shape.architecture];
  const { recurrence } = shape;
  const config = {
    architectures: [architecture],
    model_type: modelType,
    num_hidden_layers: shape.numLayers,
    hidden_size: shape.hiddenSize,
    intermediate_size: shape.intermediateSize,
    num_attention_heads: shape.numHeads,
    num_key_value_heads: shape.numKvHeads,
    head_dim: shape.headDim,
    vocab_size: shape.vocabSize,
    max_position_embeddings: shape.contextLength,
    rope_theta: shape.ropeTheta,
    rms_norm_eps: shape.rmsNormEps,
    ...(shape.slidingWindow === undefined
      ? { hidden_act: "silu" }
      : {
          hidden_activation: "gelu_pytorch_tanh",
          query_pre_attn_scalar: shape.headDim,
          sliding_window: shape.slidingWindow,
        }),
    tie_word_embeddings: true,
    torch_dtype: "bfloat16",
    ...(recurrence !== undefined && {
      full_attention_interval: recurrence.attentionEvery,
      linear_num_key_heads: recurrence.numKeyHeads,
      linear_num_value_heads: recurrence.numHeads,
      linear_key_head_dim: recurrence.keyDim,
      linear_value_head_dim: recurrence.valueDim,
      linear_conv_kernel_dim: recurrence.taps,
      partial_rotary_factor: (shape.rotaryDim ?? shape.headDim) / shape.headDim,
    }),
  };
  writeFileSync(join(folder, "config.json"), `${JSON.stringify(config, undefined, 2)}\n`);
}
