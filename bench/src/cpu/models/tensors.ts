import {
  blockLayout,
  type FileType,
  type TensorRole,
  type TensorType,
  tensorType,
} from "./quantisation-mix.js";
import type { BenchShape } from "./shapes.js";

export interface TensorSpec {
  /** GGUF's name. */
  readonly name: string;
  readonly type: TensorType;
  /** Outermost first. */
  readonly shape: readonly number[];
  readonly byteLength: number;
  /** Standard deviation and mean of the values. */
  readonly deviation: number;
  readonly mean: number;
}

/**
 * Small embeddings leave the residual stream to the layers: with an output head that is the embedding, the token just read
 * would otherwise be the likeliest next one, and greedy decoding would stand still.
 */
const EMBEDDING_GAIN = 0.1;
/**
 * The gain of the last norm spreads the logits to this deviation: far enough that the best token is rarely a near tie, so that
 * greedy answers of different engines can be compared.
 */
const LOGIT_DEVIATION = 4;

/**
 * The tensors of a model file with the scales of common initialisations: 1/sqrt(inputs), and projections into the residual
 * stream smaller by the root of their number, so that activations keep their size through the layers.
 */
export function modelTensors(shape: BenchShape, file: FileType): TensorSpec[] {
  const { hiddenSize, intermediateSize, numLayers, numHeads, numKvHeads, headDim, vocabSize } = shape;
  const qSize = numHeads * headDim;
  const kvSize = numKvHeads * headDim;
  const intoResidual = 1 / Math.sqrt(2 * numLayers);
  const lastGain = LOGIT_DEVIATION / EMBEDDING_GAIN;
  const vector = (name: string, length: number, deviation: number, mean = 0): TensorSpec => ({
    name,
    type: "f32",
    shape: [length],
    byteLength: 4 * length,
    deviation,
    mean,
  });
  const matrix = (
    name: string,
    role: TensorRole,
    layer: number,
    rows: number,
    columns: number,
    gain = 1,
  ): TensorSpec => {
    const type = tensorType(file, role, layer, columns, shape);
    const { elements, bytes } = blockLayout(type);
    return {
      name,
      type,
      shape: [rows, columns],
      byteLength: ((rows * columns) / elements) * bytes,
      deviation: gain / Math.sqrt(columns),
      mean: 0,
    };
  };
  const { recurrence, norms } = shape;
  const isGated = recurrence !== undefined;
  const attention = (layer: number, at: (part: string) => string): TensorSpec[] => [
    matrix(at("attn_q.weight"), "weight", layer, isGated ? 2 * qSize : qSize, hiddenSize),
    matrix(at("attn_k.weight"), "weight", layer, kvSize, hiddenSize),
    matrix(at("attn_v.weight"), "attn_v", layer, kvSize, hiddenSize),
    ...(shape.hasAttentionBias
      ? [
          vector(at("attn_q.bias"), qSize, 0.1),
          vector(at("attn_k.bias"), kvSize, 0.1),
          vector(at("attn_v.bias"), kvSize, 0.1),
        ]
      : []),
    ...(norms?.heads === true
      ? [
          vector(at("attn_q_norm.weight"), headDim, 0.02, 1),
          vector(at("attn_k_norm.weight"), headDim, 0.02, 1),
        ]
      : []),
    matrix(at("attn_output.weight"), "weight", layer, hiddenSize, qSize, intoResidual),
  ];
  const deltaNet = (
    { numKeyHeads, numHeads: heads, keyDim, valueDim, taps }: NonNullable<BenchShape["recurrence"]>,
    layer: number,
    at: (part: string) => string,
  ): TensorSpec[] => {
    const valueSize = heads * valueDim;
    const inputs = 2 * numKeyHeads * keyDim + valueSize;
    return [
      matrix(at("attn_qkv.weight"), "attn_v", layer, inputs, hiddenSize),
      matrix(at("attn_gate.weight"), "weight", layer, valueSize, hiddenSize),
      matrix(at("ssm_beta.weight"), "weight", layer, heads, hiddenSize),
      matrix(at("ssm_alpha.weight"), "weight", layer, heads, hiddenSize),
      { ...vector(at("ssm_conv1d.weight"), inputs * taps, 0.5), shape: [inputs, taps] },
      vector(at("ssm_dt.bias"), heads, 1),
      vector(at("ssm_a"), heads, 0.2, -1),
      vector(at("ssm_norm.weight"), valueDim, 0.02, 1),
      matrix(at("ssm_out.weight"), "weight", layer, hiddenSize, valueSize, intoResidual),
    ];
  };
  const layers = Array.from({ length: numLayers }, (_, layer) => {
    const at = (part: string): string => `blk.${layer}.${part}`;
    const isRecurrent = recurrence !== undefined && (layer + 1) % recurrence.attentionEvery !== 0;
    return [
      vector(at("attn_norm.weight"), hiddenSize, 0.02, 1),
      ...(isRecurrent ? deltaNet(recurrence, layer, at) : attention(layer, at)),
      ...(norms?.outputs === true
        ? [
            vector(at("post_attention_norm.weight"), hiddenSize, 0.02, 1),
            vector(at("post_ffw_norm.weight"), hiddenSize, 0.02, 1),
          ]
        : []),
      vector(at(isGated ? "post_attention_norm.weight" : "ffn_norm.weight"), hiddenSize, 0.02, 1),
      matrix(at("ffn_gate.weight"), "weight", layer, intermediateSize, hiddenSize),
      matrix(at("ffn_up.weight"), "weight", layer, intermediateSize, hiddenSize),
      matrix(at("ffn_down.weight"), "ffn_down", layer, hiddenSize, intermediateSize, intoResidual),
    ];
  }).flat();
  return [
    matrix("token_embd.weight", "embedding", 0, vocabSize, hiddenSize, EMBEDDING_GAIN),
    ...layers,
    vector("output_norm.weight", hiddenSize, 0.02 * lastGain, lastGain),
  ];
}

/** Bytes of the matrices that a decode step reads: all of them, as the embedding is the output head too. */
export function matrixBytes(tensors: readonly TensorSpec[]): number {
  return tensors.reduce((sum, { type, byteLength }) => sum + (type === "f32" ? 0 : byteLength), 0);
}

/** Multiply-adds of a prompt token: every matrix but the output head, which the last token alone meets. */
export function multiplyAddsPerToken(tensors: readonly TensorSpec[]): number {
  return tensors.reduce((sum, { name, type, shape: [rows = 0, columns = 0] }) => {
    return sum + (type === "f32" || name === "token_embd.weight" ? 0 : rows * columns);
  }, 0);
}
