import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { toBfloat16 } from "@octavo/artifacts/testing/float-bits";
import { joinSafetensors } from "@octavo/artifacts/testing/write-safetensors";
import { writeModel } from "../cpu/models/model-file.js";
import { randomTensor } from "../cpu/models/random-blocks.js";
import { modelShapes } from "../cpu/models/shapes.js";
import { modelTensors, type TensorSpec } from "../cpu/models/tensors.js";

const type = "q8_0";
const shape = modelShapes["qwen2.5-0.5b"];
const { hiddenSize, vocabSize, numHeads, numKvHeads, headDim, intermediateSize } = shape;
/** As published heads of models with large vocabularies have. */
const draftVocabSize = 32_000;
const codeSize = numKvHeads * headDim;
const embeddingName = "token_embd.weight";

/**
 * A model with the shape and the work of Qwen2.5 0.5B whose greedy answer is known: no layer adds to the residual stream, and the row
 * of token t + 1 in the output head is the embedding of t, so that ids count up.
 */
export function cycleModel(folder: string): string {
  const path = join(folder, `${shape.name}-${type}-cycle-v1.gguf`);
  if (existsSync(path)) return path;
  mkdirSync(folder, { recursive: true });
  const tensors = modelTensors(shape, type).map((tensor) =>
    /attn_output|ffn_down/.test(tensor.name) ? { ...tensor, deviation: 0 } : tensor,
  );
  const embedding = tensors.find(({ name }) => name === embeddingName)!;
  writeModel(path, shape, type, [...tensors, { ...embedding, name: "output.weight" }], (tensor) =>
    tensor.name === "output.weight" ? rowsDownByOne(embedding) : randomTensor(tensor),
  );
  return path;
}

/** Row t of the tensor as row t + 1, the last one first. */
function* rowsDownByOne(tensor: TensorSpec): Generator<Uint8Array, void> {
  const rowBytes = tensor.byteLength / vocabSize;
  const all = Buffer.concat([...randomTensor(tensor)]);
  yield all.subarray(all.length - rowBytes);
  yield all.subarray(0, all.length - rowBytes);
}

/**
 * An EAGLE-3 head for it of the size that such heads have. Its attention sees nothing but the token at hand, of which it passes some columns on;
 * the row of token t + 1 in its output head is those columns of the embedding of t, but of a share of the tokens, which it never guesses.
 */
export function cycleHead(folder: string, acceptance: number): string {
  const head = join(folder, `${shape.name}-cycle-head-${acceptance}-v1`);
  if (existsSync(join(head, "config.json"))) return head;
  mkdirSync(head, { recursive: true });
  const embedding = modelTensors(shape, type).find(({ name }) => name === embeddingName)!;
  const [queries, keys] = [numHeads * headDim, codeSize];
  const layer = "midlayer";
  const parts: Part[] = [
    ["fc.weight", [hiddenSize, 3 * hiddenSize]],
    ["norm.weight", [hiddenSize], () => 1],
    [`${layer}.input_layernorm.weight`, [hiddenSize], () => 1],
    [`${layer}.hidden_norm.weight`, [hiddenSize], () => 1],
    [`${layer}.post_attention_layernorm.weight`, [hiddenSize], () => 1],
    [`${layer}.self_attn.q_proj.weight`, [queries, 2 * hiddenSize]],
    [`${layer}.self_attn.k_proj.weight`, [keys, 2 * hiddenSize]],
    // Each key/value head has columns of its own.
    [`${layer}.self_attn.v_proj.weight`, [keys, 2 * hiddenSize], (row, column) => (row === column ? 1 : 0)],
    [`${layer}.self_attn.o_proj.weight`, [hiddenSize, queries], passesOn],
    // Pairs that rotate fast: a token further away scores far less than the one at hand.
    [`${layer}.self_attn.q_proj.bias`, [queries], (column) => (column % headDim < 8 ? 20 : 0)],
    [`${layer}.self_attn.k_proj.bias`, [keys], (column) => (column % headDim < 8 ? 20 : 0)],
    [`${layer}.self_attn.v_proj.bias`, [keys]],
    [`${layer}.self_attn.o_proj.bias`, [hiddenSize]],
    [`${layer}.mlp.gate_proj.weight`, [intermediateSize, hiddenSize]],
    [`${layer}.mlp.up_proj.weight`, [intermediateSize, hiddenSize]],
    [`${layer}.mlp.down_proj.weight`, [hiddenSize, intermediateSize]],
    ["lm_head.weight", [draftVocabSize, hiddenSize], guesses(embedding, acceptance)],
  ];
  writeFileSync(join(head, "model.safetensors"), encode(parts));
  writeFileSync(join(head, "config.json"), `${JSON.stringify(headConfig, undefined, 2)}\n`);
  return head;
}

type Part = readonly [
  name: string,
  shape: readonly number[],
  value?: (row: number, column: number) => number,
];

/** The first query head of each key/value head writes what it read into the columns that it came from. */
function passesOn(row: number, column: number): number {
  const head = Math.floor(row / headDim);
  if (head >= numKvHeads) return 0;
  return column === (head * numHeads * headDim) / numKvHeads + (row % headDim) ? 1 : 0;
}

function guesses(embedding: TensorSpec, acceptance: number): (row: number, column: number) => number {
  const rowBytes = embedding.byteLength / vocabSize;
  const bytes = Buffer.concat([...randomTensor(embedding)].slice(0, 6)).subarray(
    0,
    draftVocabSize * rowBytes,
  );
  // Q8_0: a block of 32 columns is an f16 scale and 32 codes; scales differ little, so codes are enough to tell tokens apart.
  return (row, column) => {
    if (row === 0 || column >= codeSize || (row * 0.618_033_988_75) % 1 >= acceptance) return 0;
    const block = Math.floor(column / 32);
    const at = (row - 1) * rowBytes + block * 34;
    const sign = (bytes[at + 1] ?? 0) & 0x80 ? -1 : 1;
    return (sign * bytes.readInt8(at + 2 + (column % 32))) / 128;
  };
}

function encode(parts: readonly Part[]): Uint8Array {
  const header: Record<string, unknown> = {};
  const data: Uint8Array[] = [];
  let offset = 0;
  const add = (name: string, dtype: string, shapeOf: readonly number[], bytes: Uint8Array): void => {
    header[name] = { dtype, shape: shapeOf, data_offsets: [offset, offset + bytes.byteLength] };
    data.push(bytes);
    offset += bytes.byteLength;
  };
  for (const [name, [rows = 0, columns], value] of parts) {
    const words = new Uint16Array(rows * (columns ?? 1));
    if (value !== undefined)
      for (let at = 0; at < words.length; at += 1)
        words[at] = toBfloat16(
          value(Math.floor(at / (columns ?? 1)), columns === undefined ? at : at % columns),
        );
    add(name, "BF16", columns === undefined ? [rows] : [rows, columns], new Uint8Array(words.buffer));
  }
  add("d2t", "I64", [draftVocabSize], new Uint8Array(8 * draftVocabSize));
  return joinSafetensors(JSON.stringify(header), Buffer.concat(data));
}

const headConfig = {
  architectures: ["LlamaForCausalLMEagle3"],
  model_type: "llama",
  vocab_size: vocabSize,
  draft_vocab_size: draftVocabSize,
  hidden_size: hiddenSize,
  intermediate_size: intermediateSize,
  num_hidden_layers: 1,
  num_attention_heads: numHeads,
  num_key_value_heads: numKvHeads,
  head_dim: headDim,
  rms_norm_eps: shape.rmsNormEps,
  rope_theta: 10_000,
  max_position_embeddings: shape.contextLength,
  hidden_act: "silu",
  attention_bias: true,
  mlp_bias: false,
  tie_word_embeddings: false,
};
