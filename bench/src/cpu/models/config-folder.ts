import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { BenchShape } from "./shapes.js";

const architectures = { llama: "LlamaForCausalLM", qwen2: "Qwen2ForCausalLM" } as const;

/** Beside a model file: its shape as a config.json, for peers that draw the weights themselves. */
export function configFolderOf(modelPath: string): string {
  return `${modelPath}.config`;
}

export function writeConfig(modelPath: string, shape: BenchShape): void {
  const folder = configFolderOf(modelPath);
  mkdirSync(folder, { recursive: true });
  const config = {
    architectures: [architectures[shape.architecture]],
    model_type: shape.architecture,
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
    hidden_act: "silu",
    tie_word_embeddings: true,
    torch_dtype: "bfloat16",
  };
  writeFileSync(join(folder, "config.json"), `${JSON.stringify(config, undefined, 2)}\n`);
}
