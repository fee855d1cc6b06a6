/** What transformers' config class of an architecture assumes for a field that config.json leaves out. */
export interface ArchitectureDefaults {
  readonly modelType: string;
  readonly vocabSize: number;
  readonly intermediateSize: number;
  readonly maxPositionEmbeddings: number;
  /** undefined: as many as heads. */
  readonly numKvHeads: number | undefined;
  /** undefined: hidden size / heads. */
  readonly headDim: number | undefined;
  readonly bosTokenId: number | undefined;
  readonly eosTokenId: number | undefined;
  /** Biases of q, k, v and of the output projection: `config` where attention_bias decides. */
  readonly attentionBias: { readonly qkv: boolean | "config"; readonly output: boolean | "config" };
  readonly mlpBias: boolean | "config";
  /** undefined: 10 000. */
  readonly ropeTheta?: number;
  /** undefined: 1e-6. */
  readonly rmsNormEps?: number;
  /** undefined: silu, and separate embeddings. */
  readonly hiddenActivation?: string;
  readonly tieWordEmbeddings?: boolean;
  /** Window where `sliding_window` is absent; undefined: 4096. */
  readonly slidingWindow?: number | null;
  /** Every so many layers, the last has full attention and the others a window, where `layer_types` is absent. */
  readonly slidingPattern?: number;
  /**
   * `always`: every layer has `sliding_window`; `by layer`: layer_types, or use_sliding_window from max_window_layers on;
   * `when used`: every layer under use_sliding_window; `alternating when used`: then every other one below max_window_layers.
   */
  readonly window: "none" | "always" | "by layer" | "by pattern" | "when used" | "alternating when used";
  /** Mixtures of experts alone. */
  readonly experts?: {
    readonly count: number;
    readonly perToken: number;
    /** undefined: `intermediate_size` is the experts'. */
    readonly intermediateSize?: number;
    /** undefined: no expert is shared. */
    readonly sharedIntermediateSize?: number;
    /** `config` where norm_topk_prob decides. */
    readonly normalizeWeights: boolean | "config";
  };
}

/** Sources: configuration_*.py of transformers, and the modeling files for biases. */
export const architectures: Readonly<Record<string, ArchitectureDefaults>> = {
  LlamaForCausalLM: {
    modelType: "llama",
    vocabSize: 32_000,
    intermediateSize: 11_008,
    maxPositionEmbeddings: 2_048,
    numKvHeads: undefined,
    headDim: undefined,
    bosTokenId: 1,
    eosTokenId: 2,
    attentionBias: { qkv: "config", output: "config" },
    mlpBias: "config",
    window: "none",
  },
  MistralForCausalLM: {
    modelType: "mistral",
    vocabSize: 32_000,
    intermediateSize: 14_336,
    maxPositionEmbeddings: 131_072,
    numKvHeads: 8,
    headDim: undefined,
    bosTokenId: 1,
    eosTokenId: 2,
    attentionBias: { qkv: false, output: false },
    mlpBias: false,
    window: "always",
  },
  Qwen2ForCausalLM: {
    modelType: "qwen2",
    vocabSize: 151_936,
    intermediateSize: 22_016,
    maxPositionEmbeddings: 32_768,
    numKvHeads: 32,
    headDim: undefined,
    bosTokenId: undefined,
    eosTokenId: undefined,
    attentionBias: { qkv: true, output: false },
    mlpBias: false,
    window: "by layer",
  },
  Qwen3ForCausalLM: {
    modelType: "qwen3",
    vocabSize: 151_936,
    intermediateSize: 22_016,
    maxPositionEmbeddings: 32_768,
    numKvHeads: 32,
    headDim: 128,
    bosTokenId: undefined,
    eosTokenId: undefined,
    attentionBias: { qkv: "config", output: "config" },
    mlpBias: false,
    window: "by layer",
  },
  MixtralForCausalLM: {
    modelType: "mixtral",
    vocabSize: 32_000,
    intermediateSize: 14_336,
    maxPositionEmbeddings: 131_072,
    numKvHeads: 8,
    headDim: undefined,
    bosTokenId: 1,
    eosTokenId: 2,
    attentionBias: { qkv: false, output: false },
    mlpBias: false,
    ropeTheta: 1_000_000,
    rmsNormEps: 1e-5,
    slidingWindow: null,
    window: "always",
    experts: { count: 8, perToken: 2, normalizeWeights: true },
  },
  Qwen2MoeForCausalLM: {
    modelType: "qwen2_moe",
    vocabSize: 151_936,
    intermediateSize: 5_632,
    maxPositionEmbeddings: 32_768,
    numKvHeads: 16,
    headDim: undefined,
    bosTokenId: undefined,
    eosTokenId: undefined,
    attentionBias: { qkv: true, output: false },
    mlpBias: false,
    window: "alternating when used",
    experts: {
      count: 60,
      perToken: 4,
      intermediateSize: 1_408,
      sharedIntermediateSize: 5_632,
      normalizeWeights: "config",
    },
  },
  Qwen3MoeForCausalLM: {
    modelType: "qwen3_moe",
    vocabSize: 151_936,
    intermediateSize: 6_144,
    maxPositionEmbeddings: 32_768,
    numKvHeads: 4,
    headDim: undefined,
    bosTokenId: undefined,
    eosTokenId: undefined,
    attentionBias: { qkv: "config", output: "config" },
    mlpBias: false,
    window: "when used",
    experts: { count: 128, perToken: 8, intermediateSize: 768, normalizeWeights: "config" },
  },
  OlmoeForCausalLM: {
    modelType: "olmoe",
    vocabSize: 50_304,
    intermediateSize: 2_048,
    maxPositionEmbeddings: 4_096,
    numKvHeads: undefined,
    headDim: undefined,
    bosTokenId: undefined,
    eosTokenId: 50_279,
    attentionBias: { qkv: "config", output: "config" },
    mlpBias: false,
    rmsNormEps: 1e-5,
    window: "none",
    experts: { count: 64, perToken: 8, normalizeWeights: "config" },
  },
  GraniteMoeForCausalLM: {
    modelType: "granitemoe",
    vocabSize: 32_000,
    intermediateSize: 11_008,
    maxPositionEmbeddings: 2_048,
    numKvHeads: undefined,
    headDim: undefined,
    bosTokenId: 1,
    eosTokenId: 2,
    attentionBias: { qkv: "config", output: "config" },
    mlpBias: false,
    window: "none",
    experts: { count: 8, perToken: 2, normalizeWeights: true },
  },
  GptOssForCausalLM: {
    modelType: "gpt_oss",
    vocabSize: 201_088,
    intermediateSize: 2_880,
    maxPositionEmbeddings: 131_072,
    numKvHeads: 8,
    headDim: 64,
    bosTokenId: undefined,
    eosTokenId: undefined,
    attentionBias: { qkv: true, output: true },
    mlpBias: false,
    ropeTheta: 150_000,
    rmsNormEps: 1e-5,
    slidingWindow: 128,
    slidingPattern: 2,
    window: "by pattern",
    experts: { count: 128, perToken: 4, normalizeWeights: true },
  },
  GraniteForCausalLM: {
    modelType: "granite",
    vocabSize: 32_000,
    intermediateSize: 11_008,
    maxPositionEmbeddings: 2_048,
    numKvHeads: undefined,
    headDim: undefined,
    bosTokenId: 1,
    eosTokenId: 2,
    attentionBias: { qkv: "config", output: "config" },
    mlpBias: "config",
    window: "none",
  },
  SmolLM3ForCausalLM: {
    modelType: "smollm3",
    vocabSize: 128_256,
    intermediateSize: 11_008,
    maxPositionEmbeddings: 32_768,
    numKvHeads: 4,
    headDim: undefined,
    bosTokenId: 128_000,
    eosTokenId: 128_001,
    attentionBias: { qkv: "config", output: "config" },
    mlpBias: "config",
    ropeTheta: 2_000_000,
    tieWordEmbeddings: true,
    slidingWindow: null,
    window: "by layer",
  },
  Olmo2ForCausalLM: {
    modelType: "olmo2",
    vocabSize: 50_304,
    intermediateSize: 11_008,
    maxPositionEmbeddings: 2_048,
    numKvHeads: undefined,
    headDim: undefined,
    bosTokenId: undefined,
    eosTokenId: 50_279,
    attentionBias: { qkv: "config", output: "config" },
    mlpBias: false,
    rmsNormEps: 1e-5,
    window: "none",
  },
  Phi3ForCausalLM: {
    modelType: "phi3",
    vocabSize: 32_064,
    intermediateSize: 8_192,
    maxPositionEmbeddings: 4_096,
    numKvHeads: undefined,
    headDim: undefined,
    bosTokenId: 1,
    eosTokenId: 32_000,
    attentionBias: { qkv: false, output: false },
    mlpBias: false,
    rmsNormEps: 1e-5,
    slidingWindow: null,
    window: "always",
  },
  Gemma2ForCausalLM: {
    modelType: "gemma2",
    vocabSize: 256_000,
    intermediateSize: 9_216,
    maxPositionEmbeddings: 8_192,
    numKvHeads: 4,
    headDim: 256,
    bosTokenId: 2,
    eosTokenId: 1,
    attentionBias: { qkv: "config", output: "config" },
    mlpBias: false,
    hiddenActivation: "gelu_pytorch_tanh",
    tieWordEmbeddings: true,
    slidingPattern: 2,
    window: "by pattern",
  },
  Gemma3ForCausalLM: {
    modelType: "gemma3_text",
    vocabSize: 262_208,
    intermediateSize: 9_216,
    maxPositionEmbeddings: 131_072,
    numKvHeads: 4,
    headDim: 256,
    bosTokenId: 2,
    eosTokenId: 1,
    attentionBias: { qkv: "config", output: "config" },
    mlpBias: false,
    ropeTheta: 1_000_000,
    hiddenActivation: "gelu_pytorch_tanh",
    tieWordEmbeddings: true,
    slidingPattern: 6,
    window: "by pattern",
  },
};
