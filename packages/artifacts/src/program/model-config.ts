import type { PlainActivation, RopeSpec } from "@octavo/kernels";

/** A checkpoint's architecture in one vocabulary, whichever format it came in. Sizes count elements. */
export interface ModelConfig {
  /** Registry key, e.g. "LlamaForCausalLM" (GGUF architectures are mapped to it). */
  readonly architecture: string;
  readonly vocabSize: number;
  readonly hiddenSize: number;
  readonly intermediateSize: number;
  readonly numLayers: number;
  readonly numHeads: number;
  readonly numKvHeads: number;
  readonly headDim: number;
  /** Heads of the layers without a window, where they are others (Gemma 4); `valuesAreKeys`: see `LayerHeads`. */
  readonly globalHeads?: {
    readonly numKvHeads: number;
    readonly headDim: number;
    readonly valuesAreKeys: boolean | undefined;
  };
  /** So many last layers attend to the keys and values of the last one before them that is of their kind, with a window or without. */
  readonly numSharedKvLayers?: number;
  /** Of each layer's MLP, where they differ; `intermediateSize` is the smallest. */
  readonly intermediateSizes?: readonly number[];
  /** Each layer has an embedding of the token of its own, of this size (Gemma 4). */
  readonly perLayerInput?: { readonly size: number; readonly vocabSize: number };
  readonly rmsNormEps: number;
  readonly maxPositionEmbeddings: number;
  readonly tieWordEmbeddings: boolean;
  /** Biases on q, k and v. */
  readonly attentionBias: boolean;
  /** Bias on the attention's output projection; absent means none (Qwen2 has q, k, v biases alone). */
  readonly attentionOutputBias?: boolean;
  readonly mlpBias: boolean;
  readonly hiddenActivation: "silu" | "gelu" | "gelu_tanh" | "clamped_swiglu" | "relu_squared";
  readonly rope: RopeConfig;
  /** First layers to whose output images add rows of their own; only where images are taken. */
  readonly numTappedLayers?: number;
  /** Window per layer; undefined for full attention. */
  readonly slidingWindows: readonly (number | undefined)[];
  /** Windows are chunks: a token sees itself and those before it from the last multiple of the window's size on. */
  readonly windowsAreChunks?: true;
  /** Norms before blocks and of the last hidden state: of the root mean square when absent, or layer norms (`rmsNormEps` all the same). */
  readonly normKind?: "layer";
  /** Queries grow with their position, see `RopeSpec.growth`: those that rotate, or those of `layersWithoutRope`. */
  readonly queryGrowth?: NonNullable<RopeSpec["growth"]> & { readonly isWithoutRope?: true };
  /** Gemma's norms multiply by 1 + weight. */
  readonly normWeightOffset?: number;
  /** Multiply token embeddings, block outputs before they join the residual stream, and logits; 1 when absent. */
  readonly embeddingScale?: number;
  readonly residualScale?: number;
  readonly logitScale?: number;
  /** Multiplies attention scores; 1 / sqrt(head size) when absent. */
  readonly attentionScale?: number;
  /** Scores and logits become cap * tanh(x / cap). */
  readonly attentionSoftCap?: number;
  readonly logitSoftCap?: number;
  /** Norms of q and k, in families some of whose models have them; absent where the tensors decide. */
  readonly hasQueryKeyNorm?: boolean;
  /** Factors of projections' inputs and outputs (Falcon-H1). */
  readonly multipliers?: {
    readonly attention: { readonly input: number; readonly key: number; readonly output: number };
    readonly mlp: { readonly gate: number; readonly output: number };
  };
  /** Multi-head latent attention; `numKvHeads` is 1 and `headDim` the size of what the cache keeps of a token. */
  readonly latent?: LatentConfig;
  /** Bounds queries, keys and values, after their norms and before rotation, to [-clip, clip] (OLMoE). */
  readonly attentionClip?: number;
  /** Rotary embedding of layers with a sliding window, where it differs (Gemma 3). */
  readonly localRope?: RopeConfig;
  /** True for layers whose queries and keys are not rotated (SmolLM3). */
  readonly layersWithoutRope?: readonly boolean[];
  /** Mixtures of experts alone. */
  readonly experts?: ExpertsConfig;
  /** Models some of whose layers keep a state of fixed size alone. */
  readonly recurrence?: RecurrenceConfig;
  /** The checkpoint's own dtype. */
  readonly dtype: "f32" | "f16" | "bf16" | "quantized";
  readonly bosTokenId: number | undefined;
  readonly eosTokenIds: readonly number[];
  /** Models whose tokens see those that come later, too: they take whole sequences and keep nothing of them. */
  readonly encoder?: EncoderConfig;
  /** A head that gives a score to each of some labels, in place of text. */
  readonly classifier?: ClassifierConfig;
  /** False for a checkpoint without an output head: it gives embeddings, no text. */
  readonly hasHead?: false;
  /** How its embeddings are made, where the checkpoint says so. */
  readonly embedding?: EmbeddingConfig;
}

/** Attention over one latent and one rotated key per token, which all heads share (DeepSeek V2, arXiv 2405.04434). */
export interface LatentConfig {
  /** Size of the latent. */
  readonly kvRank: number;
  /** Size of what queries are projected to first; absent where they are projected in one step. */
  readonly queryRank?: number;
  /** Of a head's query: columns that are not rotated, and those that are. */
  readonly plainDim: number;
  readonly rotatedDim: number;
  /** Of a head's output. */
  readonly valueDim: number;
  /** Of the norms of what is projected down. */
  readonly normEps: number;
}

export interface EncoderConfig {
  /** Types of tokens and positions that the model has embeddings for; 0: it has none. */
  readonly numTypes: number;
  readonly numPositions: number;
  /** Position of a text's first token. */
  readonly firstPosition: number;
  /** Biases of norms and of the classifier's first layer; absent: as the family has them. */
  readonly normBias?: boolean;
  readonly classifierBias?: boolean;
}

/** What a sequence classification head gives: a score for each label, made of one pooled hidden state. */
export interface ClassifierConfig {
  /** By the column of their score. */
  readonly labels: readonly string[];
  readonly pooling: Pooling;
  /** What makes probabilities of the scores. */
  readonly activation: "sigmoid" | "softmax" | "identity";
  /** The score is the first of these tokens' logit less the second's; no head of its own has it (Qwen3-Reranker). */
  readonly between?: readonly [yes: number, no: number];
}

/** A text's vector: its first token's hidden state, its last one's, the mean of all or the largest value of each column. */
export type Pooling = "cls" | "last" | "mean" | "max";

/** A linear layer behind the pooling. */
export interface DenseModule {
  readonly name: string;
  readonly rows: number;
  readonly bias: boolean;
  readonly activation: PlainActivation;
}

export interface EmbeddingConfig {
  readonly pooling: Pooling;
  /** Encoders alone. */
  readonly dense?: readonly DenseModule[];
  /** Texts put before a text, by the name of its use. */
  readonly prompts?: Readonly<Record<string, string>>;
  /** The prompt of texts whose use is not said. */
  readonly defaultPrompt?: string;
  /** Scaled to length 1. */
  readonly normalize: boolean;
  /** Lengths to which embeddings may be cut; absent: none. */
  readonly dimensions?: readonly number[] | "any";
}

export interface ExpertsConfig {
  readonly count: number;
  /** How many of them a token goes to. */
  readonly perToken: number;
  readonly intermediateSize: number;
  /** Whether the chosen experts' weights are normalised to sum to 1. */
  readonly normalizeWeights: boolean;
  /** Width of the shared expert, to which every token goes; absent if there is none. */
  readonly sharedIntermediateSize?: number;
  /** True for layers with a dense MLP of `ModelConfig.intermediateSize`. */
  readonly denseLayers: readonly boolean[];
  /** Weights are sigmoids; else they come of a softmax. */
  readonly scoring?: "sigmoid";
  /** Experts have biases that only their choice sees. */
  readonly hasSelectionBias?: boolean;
  readonly groups?: { readonly count: number; readonly chosen: number; readonly by: "best" | "two_best" };
  /** Multiplies the weights. */
  readonly weightScale?: number;
  /** An expert's weight multiplies what it reads, not what it gives. */
  readonly weighsInput?: true;
}

export type RecurrenceConfig = GatedDeltaConfig | ShortConvolutionConfig | StateSpaceConfig;

/** Mamba-2 layers. */
export interface StateSpaceConfig {
  readonly kind: "state_space";
  /** True for the layers without attention; one with it may have a state beside. */
  readonly layers: readonly boolean[];
  /** What each layer is, where it is one block alone (Nemotron-H). */
  readonly blocks?: readonly ("state_space" | "attention" | "mlp" | "experts")[];
  /** Tokens that the convolution of x, b and c sees. */
  readonly taps: number;
  readonly numGroups: number;
  readonly numHeads: number;
  readonly headDim: number;
  readonly stateSize: number;
  readonly hasConvolutionBias: boolean;
  readonly hasProjectionBias: boolean;
  /** Norm of each group of what the heads give: after it is multiplied by its gate, before, or none. */
  readonly norm: "after_gate" | "before_gate" | "none";
  readonly leastStep?: number;
  readonly mostStep?: number;
  /** `negative` in GGUF files, whose converter applies -exp to the decay rates. */
  readonly rateForm: "log" | "negative";
  /** Multiply what is projected: gate, x, b, c and step; and what the layer gives. */
  readonly inputScales?: readonly number[];
  readonly outputScale?: number;
}

/** Layers of a gated convolution (LFM2). */
export interface ShortConvolutionConfig {
  readonly kind: "short_convolution";
  /** True for the layers that have it in place of attention. */
  readonly layers: readonly boolean[];
  /** Tokens that it sees. */
  readonly taps: number;
  readonly hasBias: boolean;
}

/** Gated DeltaNet layers. */
export interface GatedDeltaConfig {
  readonly kind: "gated_delta_rule";
  /** True for the layers that have it in place of attention. */
  readonly layers: readonly boolean[];
  /** Tokens that the convolution of q, k and v sees. */
  readonly taps: number;
  readonly numKeyHeads: number;
  readonly numHeads: number;
  readonly keyDim: number;
  readonly valueDim: number;
  /** `tiled` and `negative` in GGUF files, whose converter orders the heads for broadcasting and applies -exp to the decay rates. */
  readonly keyHeads: "grouped" | "tiled";
  readonly rateForm: "log" | "negative";
  /** One projection gives each key head's q, k, v and output gate side by side, another its write strengths and decays (Qwen3-Next). */
  readonly isByKeyHead?: true;
}

/** Rotary position embeddings (arXiv 2104.09864) of a model. */
export interface RopeConfig {
  readonly theta: number;
  /** Rotated part of each head; headDim unless partial. */
  readonly rotaryDim: number;
  /** `interleaved` for GGUF files of the llama architecture, whose q and k rows were permuted by the converter. */
  readonly layout: "neox" | "interleaved";
  readonly scaling: RopeScaling;
  /** By pair, along which axis of an image it rotates; see `RopeSpec`. Absent where there is one. */
  readonly axes?: Uint8Array;
}

/** How rotations are stretched for contexts beyond those of the training, by transformers' `rope_type`. */
export type RopeScaling =
  | { readonly kind: "none" }
  | { readonly kind: "linear"; readonly factor: number }
  /** The first `share` of all pairs rotate, the others stay. */
  | { readonly kind: "proportional"; readonly share: number; readonly factor: number }
  | { readonly kind: "dynamic"; readonly factor: number; readonly originalMaxPositions: number }
  | {
      readonly kind: "llama3";
      readonly factor: number;
      readonly lowFrequencyFactor: number;
      readonly highFrequencyFactor: number;
      readonly originalMaxPositions: number;
    }
  | {
      readonly kind: "yarn";
      readonly factor: number;
      readonly originalMaxPositions: number;
      readonly betaFast: number;
      readonly betaSlow: number;
      readonly attentionFactor: number | undefined;
      readonly mscale: number | undefined;
      readonly mscaleAllDim: number | undefined;
      readonly truncate: boolean;
    }
  /** GGUF's `rope_freqs` tensor: each inverse frequency divided by its factor. */
  | { readonly kind: "factors"; readonly factors: Float32Array }
  /** LongRoPE: the same with `long` where sequences may grow beyond the original length, else with `short`. */
  | {
      readonly kind: "longrope";
      readonly short: Float32Array;
      readonly long: Float32Array;
      readonly originalMaxPositions: number;
      /** Multiplies cos and sin, with either list. */
      readonly attentionFactor: number;
    };
