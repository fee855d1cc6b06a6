/** The sizes of a published model, as its config.json and GGUF files give them. */
export interface BenchShape {
  readonly name: string;
  /** GGUF's `general.architecture`. */
  readonly architecture: "llama" | "qwen2" | "qwen35" | "gemma3";
  readonly numLayers: number;
  readonly hiddenSize: number;
  readonly intermediateSize: number;
  readonly numHeads: number;
  readonly numKvHeads: number;
  readonly headDim: number;
  readonly vocabSize: number;
  readonly contextLength: number;
  readonly ropeTheta: number;
  readonly rmsNormEps: number;
  readonly hasAttentionBias: boolean;
  /** GGUF's `tokenizer.ggml.pre`; absent where the vocabulary is SentencePiece's. */
  readonly preTokenizer?: string;
  /** Norms of each query's and key's head, and of what a layer's halves give. */
  readonly norms?: { readonly heads: boolean; readonly outputs: boolean };
  /** Tokens that most layers see. */
  readonly slidingWindow?: number;
  /** Gated DeltaNet layers; the last of every `attentionEvery` has attention. */
  readonly recurrence?: {
    readonly attentionEvery: number;
    readonly numKeyHeads: number;
    readonly numHeads: number;
    readonly keyDim: number;
    readonly valueDim: number;
    readonly taps: number;
  };
  /** Rotated elements of a head, where not all are. */
  readonly rotaryDim?: number;
}

/** All tie the output head to the embedding, as the published models of these sizes do, but that of 8 billion weights. */
export const modelShapes = {
  tiny: {
    name: "tiny",
    architecture: "llama",
    numLayers: 2,
    hiddenSize: 256,
    intermediateSize: 512,
    numHeads: 4,
    numKvHeads: 2,
    headDim: 64,
    vocabSize: 1024,
    contextLength: 8192,
    ropeTheta: 10_000,
    rmsNormEps: 1e-5,
    hasAttentionBias: false,
    preTokenizer: "llama-bpe",
  },
  "stories-42m": {
    name: "stories-42m",
    architecture: "llama",
    numLayers: 8,
    hiddenSize: 512,
    intermediateSize: 1376,
    numHeads: 8,
    numKvHeads: 8,
    headDim: 64,
    vocabSize: 32_000,
    contextLength: 1024,
    ropeTheta: 10_000,
    rmsNormEps: 1e-5,
    hasAttentionBias: false,
    preTokenizer: "llama-bpe",
  },
  "qwen2.5-0.5b": {
    name: "qwen2.5-0.5b",
    architecture: "qwen2",
    numLayers: 24,
    hiddenSize: 896,
    intermediateSize: 4864,
    numHeads: 14,
    numKvHeads: 2,
    headDim: 64,
    vocabSize: 151_936,
    contextLength: 32_768 + 1024,
    ropeTheta: 1_000_000,
    rmsNormEps: 1e-6,
    hasAttentionBias: true,
    preTokenizer: "qwen2",
  },
  "qwen3.5-0.8b": {
    name: "qwen3.5-0.8b",
    architecture: "qwen35",
    numLayers: 24,
    hiddenSize: 1024,
    intermediateSize: 3584,
    numHeads: 8,
    numKvHeads: 2,
    headDim: 256,
    vocabSize: 248_320,
    contextLength: 262_144,
    ropeTheta: 10_000_000,
    rmsNormEps: 1e-6,
    hasAttentionBias: false,
    preTokenizer: "qwen35",
    recurrence: { attentionEvery: 4, numKeyHeads: 16, numHeads: 16, keyDim: 128, valueDim: 128, taps: 4 },
    rotaryDim: 64,
    norms: { heads: true, outputs: false },
  },
  "gemma-3-1b": {
    name: "gemma-3-1b",
    architecture: "gemma3",
    numLayers: 26,
    hiddenSize: 1152,
    intermediateSize: 6912,
    numHeads: 4,
    numKvHeads: 1,
    headDim: 256,
    vocabSize: 262_144,
    contextLength: 32_768,
    ropeTheta: 1_000_000,
    rmsNormEps: 1e-6,
    hasAttentionBias: false,
    norms: { heads: true, outputs: true },
    slidingWindow: 512,
  },
  "llama-3.2-1b": {
    name: "llama-3.2-1b",
    architecture: "llama",
    numLayers: 16,
    hiddenSize: 2048,
    intermediateSize: 8192,
    numHeads: 32,
    numKvHeads: 8,
    headDim: 64,
    vocabSize: 128_256,
    contextLength: 131_072,
    ropeTheta: 500_000,
    rmsNormEps: 1e-5,
    hasAttentionBias: false,
    preTokenizer: "llama-bpe",
  },
  "llama-3.1-8b": {
    name: "llama-3.1-8b",
    architecture: "llama",
    numLayers: 32,
    hiddenSize: 4096,
    intermediateSize: 14_336,
    numHeads: 32,
    numKvHeads: 8,
    headDim: 128,
    vocabSize: 128_256,
    contextLength: 131_072,
    ropeTheta: 500_000,
    rmsNormEps: 1e-5,
    hasAttentionBias: false,
    preTokenizer: "llama-bpe",
  },
} as const satisfies Record<string, BenchShape>;

export type ShapeName = keyof typeof modelShapes;

/** Bytes of keys and values of one position at two bytes an element, the default of every contender. */
export function kvBytesOf(shape: BenchShape): number {
  const numAttentionLayers = shape.numLayers / (shape.recurrence?.attentionEvery ?? 1);
  return 2 * numAttentionLayers * shape.numKvHeads * shape.headDim * 2;
}
