import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ggufName } from "../gguf/names.js";
import type { WrittenType } from "./quantize.js";
import { TestRandom } from "@octavo/text/testing/random";
import { byteLevelTokens, tinyTokenizerConfig, tinyTokenizerJson, tinyVocabSize } from "./tiny-tokenizer.js";
import { writeGguf, type GgufValue } from "./write-gguf.js";
import { writeSafetensors, type TensorToWrite } from "./write-safetensors.js";

/** A whole model, small enough to be written for one test: random weights and a byte-level vocabulary. */
export interface TinyModel {
  readonly architecture: "LlamaForCausalLM" | "MistralForCausalLM" | "Qwen2ForCausalLM" | "Qwen3ForCausalLM";
  /** A multiple of 32 (256 for the K types). */
  readonly hiddenSize: number;
  readonly intermediateSize: number;
  readonly numLayers: number;
  readonly numHeads: number;
  readonly numKvHeads: number;
  readonly headDim: number;
  readonly maxPositionEmbeddings: number;
  readonly tieWordEmbeddings: boolean;
  /** Type of the matrices; norms and biases are f32 in GGUF, as converters write them. */
  readonly type: WrittenType;
  readonly seed: number;
}

const defaults: TinyModel = {
  architecture: "LlamaForCausalLM",
  hiddenSize: 64,
  intermediateSize: 96,
  numLayers: 2,
  numHeads: 4,
  numKvHeads: 2,
  headDim: 16,
  maxPositionEmbeddings: 256,
  tieWordEmbeddings: false,
  type: "f32",
  seed: 1,
};

export function tinyModel(changes: Partial<TinyModel> = {}): TinyModel {
  return { ...defaults, ...changes };
}

/** Tensors under Hugging Face's names, in the order of a layer's computation. */
function tinyTensors(model: TinyModel): TensorToWrite[] {
  const random = new TestRandom(model.seed);
  const { hiddenSize, intermediateSize, type } = model;
  const queries = model.numHeads * model.headDim;
  const keys = model.numKvHeads * model.headDim;
  const tensors: TensorToWrite[] = [];
  const matrix = (name: string, rows: number, columns: number): void => {
    tensors.push({
      name,
      type,
      shape: [rows, columns],
      data: random.floats(rows * columns, 1.7 / Math.sqrt(columns)),
    });
  };
  const vector = (name: string, length: number, center: number): void => {
    const data = random.floats(length, 0.1).map((value) => value + center);
    tensors.push({ name, type: "f32", shape: [length], data });
  };
  matrix("model.embed_tokens.weight", tinyVocabSize, hiddenSize);
  for (let layer = 0; layer < model.numLayers; layer++) {
    const at = `model.layers.${layer}.`;
    vector(`${at}input_layernorm.weight`, hiddenSize, 1);
    for (const [part, rows] of [
      ["q", queries],
      ["k", keys],
      ["v", keys],
    ] as const) {
      matrix(`${at}self_attn.${part}_proj.weight`, rows, hiddenSize);
      if (model.architecture === "Qwen2ForCausalLM") vector(`${at}self_attn.${part}_proj.bias`, rows, 0);
    }
    if (model.architecture === "Qwen3ForCausalLM") {
      vector(`${at}self_attn.q_norm.weight`, model.headDim, 1);
      vector(`${at}self_attn.k_norm.weight`, model.headDim, 1);
    }
    matrix(`${at}self_attn.o_proj.weight`, hiddenSize, queries);
    vector(`${at}post_attention_layernorm.weight`, hiddenSize, 1);
    matrix(`${at}mlp.gate_proj.weight`, intermediateSize, hiddenSize);
    matrix(`${at}mlp.up_proj.weight`, intermediateSize, hiddenSize);
    matrix(`${at}mlp.down_proj.weight`, hiddenSize, intermediateSize);
  }
  vector("model.norm.weight", hiddenSize, 1);
  if (!model.tieWordEmbeddings) matrix("lm_head.weight", tinyVocabSize, hiddenSize);
  return tensors;
}

function tinyConfigJson(model: TinyModel): Record<string, unknown> {
  return {
    architectures: [model.architecture],
    model_type: model.architecture.replace("ForCausalLM", "").toLowerCase(),
    vocab_size: tinyVocabSize,
    hidden_size: model.hiddenSize,
    intermediate_size: model.intermediateSize,
    num_hidden_layers: model.numLayers,
    num_attention_heads: model.numHeads,
    num_key_value_heads: model.numKvHeads,
    head_dim: model.headDim,
    rms_norm_eps: 1e-5,
    rope_theta: 10000,
    max_position_embeddings: model.maxPositionEmbeddings,
    tie_word_embeddings: model.tieWordEmbeddings,
    hidden_act: "silu",
    sliding_window: null,
    bos_token_id: 256,
    eos_token_id: 257,
  };
}

/** Writes a folder in Hugging Face's layout, weights in `shards` files. `config` overrides fields of config.json. */
export function writeTinyFolder(
  folder: string,
  changes: Partial<TinyModel> = {},
  options: { readonly shards?: number; readonly config?: Readonly<Record<string, unknown>> } = {},
): void {
  const model = tinyModel(changes);
  const tensors = tinyTensors(model);
  const shards = options.shards ?? 1;
  mkdirSync(folder, { recursive: true });
  writeJson(join(folder, "config.json"), { ...tinyConfigJson(model), ...options.config });
  writeJson(join(folder, "generation_config.json"), { eos_token_id: [257], temperature: 0.7, top_p: 0.9 });
  writeJson(join(folder, "tokenizer.json"), tinyTokenizerJson());
  writeJson(join(folder, "tokenizer_config.json"), tinyTokenizerConfig());
  if (shards === 1) return writeSafetensors(join(folder, "model.safetensors"), tensors);
  const weightMap: Record<string, string> = {};
  for (let shard = 0; shard < shards; shard++) {
    const name = `model-${String(shard + 1).padStart(5, "0")}-of-${String(shards).padStart(5, "0")}.safetensors`;
    const part = tensors.filter((_, index) => index % shards === shard);
    for (const tensor of part) weightMap[tensor.name] = name;
    writeSafetensors(join(folder, name), part);
  }
  writeJson(join(folder, "model.safetensors.index.json"), { metadata: {}, weight_map: weightMap });
}

/** Metadata as llama.cpp's converter writes it; Mistral becomes the llama architecture. */
export function tinyGgufMetadata(model: TinyModel): Record<string, GgufValue> {
  const kinds = {
    LlamaForCausalLM: "llama",
    MistralForCausalLM: "llama",
    Qwen2ForCausalLM: "qwen2",
    Qwen3ForCausalLM: "qwen3",
  };
  const kind = kinds[model.architecture];
  const tokens = byteLevelTokens();
  return {
    "general.architecture": { type: "string", value: kind },
    "general.name": { type: "string", value: "tiny" },
    [`${kind}.context_length`]: { type: "u32", value: model.maxPositionEmbeddings },
    [`${kind}.embedding_length`]: { type: "u32", value: model.hiddenSize },
    [`${kind}.block_count`]: { type: "u32", value: model.numLayers },
    [`${kind}.feed_forward_length`]: { type: "u32", value: model.intermediateSize },
    [`${kind}.attention.head_count`]: { type: "u32", value: model.numHeads },
    [`${kind}.attention.head_count_kv`]: { type: "u32", value: model.numKvHeads },
    [`${kind}.attention.key_length`]: { type: "u32", value: model.headDim },
    [`${kind}.attention.value_length`]: { type: "u32", value: model.headDim },
    [`${kind}.attention.layer_norm_rms_epsilon`]: { type: "f32", value: 1e-5 },
    [`${kind}.rope.freq_base`]: { type: "f32", value: 10000 },
    [`${kind}.rope.dimension_count`]: { type: "u32", value: model.headDim },
    "tokenizer.ggml.model": { type: "string", value: "gpt2" },
    "tokenizer.ggml.pre": { type: "string", value: "gpt-2" },
    "tokenizer.ggml.tokens": { type: "array", of: "string", value: tokens },
    "tokenizer.ggml.token_type": {
      type: "array",
      of: "i32",
      value: tokens.map((_, id) => (id < 256 ? 1 : 3)),
    },
    "tokenizer.ggml.merges": { type: "array", of: "string", value: [] },
    "tokenizer.ggml.bos_token_id": { type: "u32", value: 256 },
    "tokenizer.ggml.eos_token_id": { type: "u32", value: 257 },
    "tokenizer.ggml.add_bos_token": { type: "bool", value: false },
    "tokenizer.chat_template": { type: "string", value: tinyTokenizerConfig().chat_template },
  };
}

/** The same weights under GGUF's names, q and k rows permuted where the format's converter permutes them. */
export function tinyGgufTensors(model: TinyModel): TensorToWrite[] {
  const permuted = model.architecture === "LlamaForCausalLM" || model.architecture === "MistralForCausalLM";
  return tinyTensors(model).map((tensor) => {
    const name = ggufName(tensor.name) ?? tensor.name;
    const rotated = /attn_[qk]\.weight$/.test(name) && permuted;
    return rotated ? { ...tensor, name, data: interleaveRows(tensor, model.headDim) } : { ...tensor, name };
  });
}

export function writeTinyGguf(
  path: string,
  changes: Partial<TinyModel> = {},
  metadata: Readonly<Record<string, GgufValue>> = {},
): void {
  const model = tinyModel(changes);
  writeGguf(path, { metadata: { ...tinyGgufMetadata(model), ...metadata }, tensors: tinyGgufTensors(model) });
}

/** Row i and row i + d/2 of each head, which rotate together, become rows 2i and 2i + 1. */
function interleaveRows(tensor: TensorToWrite, headDim: number): Float32Array {
  const source = tensor.data as Float32Array;
  const [rows = 0, columns = 0] = tensor.shape;
  const out = new Float32Array(source.length);
  for (let row = 0; row < rows; row++) {
    const within = row % headDim;
    const pair = within % (headDim / 2);
    const target = row - within + pair * 2 + (within < headDim / 2 ? 0 : 1);
    out.set(source.subarray(row * columns, (row + 1) * columns), target * columns);
  }
  return out;
}

function writeJson(path: string, value: unknown): void {
  writeFileSync(path, JSON.stringify(value, null, 2));
}
