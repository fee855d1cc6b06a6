import { copyFileSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { TestRandom } from "@octavo/text/testing/random";
import { type TensorToWrite, writeSafetensors } from "@octavo/artifacts/testing/write-safetensors";
import { octavoMini } from "./quality.js";

const shape = {
  vocab: 4096,
  hidden: 256,
  inner: 768,
  layers: 2,
  heads: 8,
  kvHeads: 4,
  headDim: 64,
} as const;
/** Directions in which embeddings, and matrices beyond their noise, lie. */
const rank = 48;
/** Channels that are larger than the others, as trained models have them. */
const outliers = { every: 73, gain: 12 } as const;

/**
 * A random model with what makes trained ones hard to quantise and calibration worth its while: embeddings in few directions of
 * falling strength, so that activations are correlated; channels far larger than the others (LLM.int8, arXiv 2208.07339); matrices of
 * low rank under heavy-tailed noise. It is of Qwen3's architecture with octavo-mini's tokenizer.
 */
export function writeStructuredModel(folder: string, seed: number): void {
  const { vocab, hidden, inner, layers, heads, kvHeads, headDim } = shape;
  const draw = new Draw(seed);
  const tensors: TensorToWrite[] = [];
  const add = (name: string, rows: number, cols: number, data: Float32Array): void => {
    tensors.push({ name: `${name}.weight`, type: "bf16", shape: cols === 0 ? [rows] : [rows, cols], data });
  };
  const matrix = (name: string, rows: number, cols: number, gain: number): void => {
    add(name, rows, cols, draw.matrix(rows, cols, gain / Math.sqrt(cols)));
  };
  const norm = (name: string, size: number, spread: number, gain = 1): void => {
    add(
      name,
      size,
      0,
      Float32Array.from({ length: size }, () => gain * Math.exp(spread * draw.normal())),
    );
  };
  const embeddings = draw.correlated(vocab, hidden);
  for (let at = 0; at < embeddings.length; at++) {
    if ((at % hidden) % outliers.every === 0) embeddings[at] = embeddings[at]! * outliers.gain;
  }
  add("model.embed_tokens", vocab, hidden, embeddings);
  for (let layer = 0; layer < layers; layer++) {
    const at = (part: string): string => `model.layers.${layer}.${part}`;
    norm(at("input_layernorm"), hidden, 0.5);
    matrix(at("self_attn.q_proj"), heads * headDim, hidden, 1);
    matrix(at("self_attn.k_proj"), kvHeads * headDim, hidden, 1);
    matrix(at("self_attn.v_proj"), kvHeads * headDim, hidden, 1);
    matrix(at("self_attn.o_proj"), hidden, heads * headDim, 1);
    norm(at("self_attn.q_norm"), headDim, 0.1);
    norm(at("self_attn.k_norm"), headDim, 0.1);
    norm(at("post_attention_layernorm"), hidden, 0.5);
    matrix(at("mlp.gate_proj"), inner, hidden, 1.5);
    matrix(at("mlp.up_proj"), inner, hidden, 1.5);
    matrix(at("mlp.down_proj"), hidden, inner, 1.5);
  }
  norm("model.norm", hidden, 0.2, 3);
  matrix("lm_head", vocab, hidden, 1);

  mkdirSync(folder, { recursive: true });
  for (const file of ["tokenizer.json", "tokenizer_config.json", "chat_template.jinja"])
    copyFileSync(join(octavoMini, file), join(folder, file));
  const config = {
    architectures: ["Qwen3ForCausalLM"],
    model_type: "qwen3",
    vocab_size: vocab,
    hidden_size: hidden,
    intermediate_size: inner,
    num_hidden_layers: layers,
    num_attention_heads: heads,
    num_key_value_heads: kvHeads,
    head_dim: headDim,
    rms_norm_eps: 1e-6,
    rope_theta: 100_000,
    max_position_embeddings: 2048,
    tie_word_embeddings: false,
    torch_dtype: "bfloat16",
    eos_token_id: 4091,
  };
  writeFileSync(join(folder, "config.json"), JSON.stringify(config));
  writeSafetensors(join(folder, "model.safetensors"), tensors);
}

class Draw {
  readonly #random: TestRandom;

  constructor(seed: number) {
    this.#random = new TestRandom(seed);
  }

  /** Nearly: a sum of four uniform numbers, of deviation 1. */
  normal(): number {
    const sum = this.#random.next() + this.#random.next() + this.#random.next() + this.#random.next();
    return (sum - 2) * Math.sqrt(3);
  }

  /** Rows of deviation 1 that share directions: the first of them are the strongest. */
  correlated(rows: number, cols: number): Float32Array {
    const directions = Array.from({ length: rank }, (_, index) =>
      Float32Array.from({ length: cols }, () => this.normal() / (1 + index / 8)),
    );
    const strength = Math.sqrt(directions.reduce((sum, _, index) => sum + (1 + index / 8) ** -2, 0));
    const out = new Float32Array(rows * cols);
    for (let row = 0; row < rows; row++) {
      const values = out.subarray(row * cols, (row + 1) * cols);
      for (const direction of directions) {
        const weight = (0.95 * this.normal()) / strength;
        for (let col = 0; col < cols; col++) values[col] = values[col]! + weight * direction[col]!;
      }
      for (let col = 0; col < cols; col++) values[col] = values[col]! + 0.3 * this.normal();
    }
    return out;
  }

  /** Half of the variance in few directions, half in noise whose largest values stand far out. */
  matrix(rows: number, cols: number, deviation: number): Float32Array {
    const out = this.correlated(rows, cols);
    // E[exp(2 s x)] of a normal x is exp(2 s^2).
    const spread = 0.7;
    const unit = Math.exp(-(spread ** 2));
    for (let at = 0; at < out.length; at++) {
      const noise = this.normal() * unit * Math.exp(spread * this.normal());
      out[at] = deviation * Math.SQRT1_2 * (out[at]! + noise);
    }
    return out;
  }
}
