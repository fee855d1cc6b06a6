import {
  closeSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { joinSafetensors } from "@octavo/artifacts/testing/write-safetensors";
import { randomTensor } from "../cpu/models/random-blocks.js";
import type { TensorSpec } from "../cpu/models/tensors.js";
import { embeddedModel } from "../support/served-model.js";

/**
 * The layers of Qwen3-0.6B with random weights and octavo-mini's tokenizer: matrices of a size at which speed is decided by
 * their bytes, and a head that does not hide them.
 */
const shape = { hidden: 1024, intermediate: 3072, layers: 28, heads: 16, kvHeads: 8, headDim: 128 } as const;
const CONTENT_VERSION = 1;

/** Its folder, written when it is not there. */
export function wideModel(folder: string): string {
  const path = join(folder, `qwen3-0.6b-layers-v${CONTENT_VERSION}`);
  if (existsSync(path)) return path;
  const fresh = `${path}.${process.pid}.new`;
  mkdirSync(fresh, { recursive: true });
  try {
    for (const file of [
      "tokenizer.json",
      "tokenizer_config.json",
      "chat_template.jinja",
      "generation_config.json",
    ])
      copyFileSync(join(embeddedModel, file), join(fresh, file));
    const config = readConfig();
    writeFileSync(join(fresh, "config.json"), JSON.stringify(config, null, 2));
    writeTensors(join(fresh, "model.safetensors"), modelTensors(config.vocab_size));
    renameSync(fresh, path);
  } finally {
    rmSync(fresh, { recursive: true, force: true });
  }
  return path;
}

function readConfig(): { readonly vocab_size: number } {
  const config: { vocab_size: number } = JSON.parse(readFileSync(join(embeddedModel, "config.json"), "utf8"));
  const sizes: Readonly<Record<string, number>> = {
    hidden_size: shape.hidden,
    intermediate_size: shape.intermediate,
    num_hidden_layers: shape.layers,
    num_attention_heads: shape.heads,
    num_key_value_heads: shape.kvHeads,
    head_dim: shape.headDim,
  };
  return {
    ...config,
    ...sizes,
  };
}

function modelTensors(vocabSize: number): TensorSpec[] {
  const { hidden, intermediate, heads, kvHeads, headDim } = shape;
  const matrix = (name: string, rows: number, columns: number): TensorSpec => ({
    name: `${name}.weight`,
    type: "bf16",
    shape: [rows, columns],
    byteLength: 2 * rows * columns,
    deviation: columns ** -0.5,
    mean: 0,
  });
  const norm = (name: string, size: number): TensorSpec => ({
    name: `${name}.weight`,
    type: "bf16",
    shape: [size],
    byteLength: 2 * size,
    deviation: 0.1,
    mean: 1,
  });
  const layer = (index: number): TensorSpec[] => {
    const at = (name: string): string => `model.layers.${index}.${name}`;
    return [
      norm(at("input_layernorm"), hidden),
      matrix(at("self_attn.q_proj"), heads * headDim, hidden),
      matrix(at("self_attn.k_proj"), kvHeads * headDim, hidden),
      matrix(at("self_attn.v_proj"), kvHeads * headDim, hidden),
      matrix(at("self_attn.o_proj"), hidden, heads * headDim),
      norm(at("self_attn.q_norm"), headDim),
      norm(at("self_attn.k_norm"), headDim),
      norm(at("post_attention_layernorm"), hidden),
      matrix(at("mlp.gate_proj"), intermediate, hidden),
      matrix(at("mlp.up_proj"), intermediate, hidden),
      matrix(at("mlp.down_proj"), hidden, intermediate),
    ];
  };
  return [
    { ...matrix("model.embed_tokens", vocabSize, hidden), deviation: 0.1 },
    ...Array.from({ length: shape.layers }, (_, index) => layer(index)).flat(),
    norm("model.norm", hidden),
  ];
}

function writeTensors(path: string, tensors: readonly TensorSpec[]): void {
  const header: Record<string, unknown> = { __metadata__: { format: "pt" } };
  let offset = 0;
  for (const { name, shape: dimensions, byteLength } of tensors) {
    header[name] = { dtype: "BF16", shape: dimensions, data_offsets: [offset, offset + byteLength] };
    offset += byteLength;
  }
  const file = openSync(path, "w");
  try {
    writeSync(file, joinSafetensors(JSON.stringify(header), Buffer.alloc(0)));
    for (const tensor of tensors) for (const chunk of randomTensor(tensor)) writeSync(file, chunk);
  } finally {
    closeSync(file);
  }
}
