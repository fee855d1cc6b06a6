/** `copies` matrices of `[rows, cols]` (outputs, inputs). */
export interface WeightMatrix {
  /** GGUF's name without the layer, e.g. "attn_q.weight"; decides its type in each format and when it is read. */
  readonly kind: string;
  /** Undefined for the embedding and the head. */
  readonly layer: number | undefined;
  readonly rows: number;
  readonly cols: number;
  readonly copies: number;
  /** Experts among which a router chooses. */
  readonly isRouted: boolean;
}

export const embeddingKind = "token_embd.weight";
export const headKind = "output.weight";
export const routerKind = "ffn_gate_inp.weight";

/** One layer's attention as the KV cache and the roofline see it. */
export interface LayerAttention {
  /** Elements kept per token: keys and values of all KV heads, or one latent. */
  readonly kvElements: number;
  /** Vectors that an int8 cache keeps a scale for. */
  readonly kvVectors: number;
  /** Multiply-adds count two: scores and weighted values of one query token over one context token. */
  readonly flopsPerContextToken: number;
  /** A token sees so many tokens, itself included; undefined for all. */
  readonly window: number | undefined;
}

/** A model as far as its memory and speed go. Sizes count elements. */
export interface ModelShape {
  /** transformers' model_type. */
  readonly family: string;
  readonly hiddenSize: number;
  readonly numLayers: number;
  readonly numHeads: number;
  readonly numKvHeads: number;
  readonly headDim: number;
  readonly vocabSize: number;
  readonly maxPositions: number | undefined;
  /** The embedding is the output head too. */
  readonly isTied: boolean;
  readonly experts: { readonly count: number; readonly perToken: number } | undefined;
  /** True for multi-head latent attention. */
  readonly isLatent: boolean;
  readonly matrices: readonly WeightMatrix[];
  /** Norms and biases, which no format quantises. */
  readonly vectorElements: number;
  readonly attention: readonly LayerAttention[];
  /** Of the vision tower of a model that sees, which stays in 16 bits and is read for images alone; 0 of others. */
  readonly towerElements: number;
  /** What recurrent layers keep of a sequence, however long it is, in f32. */
  readonly stateElements: number;
}

export function elementsOf(matrix: WeightMatrix): number {
  return matrix.rows * matrix.cols * matrix.copies;
}

export function totalParameters(shape: ModelShape): number {
  return shape.matrices.reduce((sum, matrix) => sum + elementsOf(matrix), shape.vectorElements);
}

/** Parameters a token passes through: of routed experts, those it is sent to. */
export function activeParameters(shape: ModelShape): number {
  const share = activeShare(shape);
  return shape.matrices.reduce(
    (sum, matrix) => sum + elementsOf(matrix) * (matrix.isRouted ? share : 1),
    shape.vectorElements,
  );
}

/** Share of the routed experts that one token uses. */
export function activeShare({ experts }: ModelShape): number {
  return experts === undefined ? 1 : experts.perToken / experts.count;
}
