import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** MiniLM-L6's shape with a smaller vocabulary, which only takes memory. */
export const bertShape = {
  hidden: 384,
  layers: 6,
  heads: 12,
  inner: 1_536,
  vocab: 600,
  positions: 512,
} as const;

/** A matrix `[rows, cols]` or a vector `[rows]`, row-major. */
export interface Weight {
  readonly shape: readonly number[];
  readonly values: Float32Array;
}

export type BertWeights = ReadonlyMap<string, Weight>;

/** Random weights under BERT's names: linears of unit gain, norms near one. */
export function randomBert(): BertWeights {
  let state = 12_345;
  const next = (): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 31 - 1;
  };
  const { hidden, layers, inner, vocab, positions } = bertShape;
  const weights = new Map<string, Weight>();
  const add = (name: string, shape: readonly number[], scale: number, offset = 0): void => {
    const length = shape.reduce((product, size) => product * size, 1);
    weights.set(name, { shape, values: Float32Array.from({ length }, () => offset + scale * next()) });
  };
  const linear = (name: string, rows: number, cols: number): void => {
    add(`${name}.weight`, [rows, cols], Math.sqrt(3 / cols));
    add(`${name}.bias`, [rows], 0.1);
  };
  const norm = (name: string): void => {
    add(`${name}.weight`, [hidden], 0.1, 1);
    add(`${name}.bias`, [hidden], 0.1);
  };
  add("embeddings.word_embeddings.weight", [vocab, hidden], 1);
  add("embeddings.position_embeddings.weight", [positions, hidden], 0.3);
  add("embeddings.token_type_embeddings.weight", [1, hidden], 0.1);
  norm("embeddings.LayerNorm");
  for (let layer = 0; layer < layers; layer++) {
    const name = `encoder.layer.${layer}`;
    for (const part of ["self.query", "self.key", "self.value", "output.dense"])
      linear(`${name}.attention.${part}`, hidden, hidden);
    norm(`${name}.attention.output.LayerNorm`);
    linear(`${name}.intermediate.dense`, inner, hidden);
    linear(`${name}.output.dense`, hidden, inner);
    norm(`${name}.output.LayerNorm`);
  }
  return weights;
}

export const isLinear = (name: string): boolean => name.startsWith("encoder.") && !name.includes("LayerNorm");

/** A matrix in bytes, with a scale for each row. */
export function toBytes({ shape: [rows = 0, cols = 0], values }: Weight): {
  readonly codes: Int8Array;
  readonly scales: Float32Array;
} {
  const scales = new Float32Array(rows);
  const codes = new Int8Array(rows * cols);
  for (let row = 0; row < rows; row++) {
    const own = values.subarray(row * cols, (row + 1) * cols);
    const scale = own.reduce((most, value) => Math.max(most, Math.abs(value)), 0) / 127;
    scales[row] = scale;
    own.forEach((value, col) => (codes[row * cols + col] = Math.round(value / scale)));
  }
  return { codes, scales };
}

/** The folder that Octavo serves; `int8`: linears as compressed-tensors' int-quantized. */
export function writeFolder(folder: string, weights: BertWeights, type: "f32" | "int8"): void {
  mkdirSync(folder, { recursive: true });
  const header: Record<string, unknown> = { __metadata__: { format: "pt" } };
  const parts: Buffer[] = [];
  let offset = 0;
  const add = (
    name: string,
    dtype: string,
    shape: readonly number[],
    data: Float32Array | Int8Array,
  ): void => {
    const bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
    header[name] = { dtype, shape, data_offsets: [offset, offset + bytes.length] };
    parts.push(bytes);
    offset += bytes.length;
  };
  for (const [name, weight] of weights) {
    if (type === "f32" || !isLinear(name) || weight.shape.length === 1) {
      add(name, "F32", weight.shape, weight.values);
      continue;
    }
    const { codes, scales } = toBytes(weight);
    add(name, "I8", weight.shape, codes);
    add(name.replace(/weight$/, "weight_scale"), "F32", [scales.length, 1], scales);
  }
  const text = Buffer.from(JSON.stringify(header));
  const padded = Buffer.concat([text, Buffer.alloc((8 - (text.length % 8)) % 8, " ")]);
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(padded.length));
  writeFileSync(join(folder, "model.safetensors"), Buffer.concat([length, padded, ...parts]));
  const config = {
    architectures: ["BertModel"],
    model_type: "bert",
    hidden_size: bertShape.hidden,
    num_hidden_layers: bertShape.layers,
    num_attention_heads: bertShape.heads,
    intermediate_size: bertShape.inner,
    vocab_size: bertShape.vocab,
    max_position_embeddings: bertShape.positions,
    type_vocab_size: 1,
    ...(type === "int8" && { quantization_config: int8Scheme }),
  };
  writeFileSync(join(folder, "config.json"), JSON.stringify(config));
  const tokenizer = new URL("../../../packages/text/fixtures/tokenizers/bert-uncased.json", import.meta.url);
  writeFileSync(join(folder, "tokenizer.json"), readFileSync(fileURLToPath(tokenizer)));
}

const eightBits = { num_bits: 8, type: "int", symmetric: true };
const int8Scheme = {
  quant_method: "compressed-tensors",
  format: "int-quantized",
  quantization_status: "compressed",
  config_groups: {
    group_0: {
      targets: ["Linear"],
      weights: { ...eightBits, strategy: "channel", group_size: null },
      input_activations: { ...eightBits, strategy: "token", dynamic: true },
    },
  },
};
