/** What a family's code does that its config.json does not say. */
export interface Family {
  /** Biases of q, k, v, and of the output projection: `config` where attention_bias decides. */
  readonly qkvBias: boolean | "config";
  readonly outputBias: boolean | "config";
  /** Norms of queries and keys: none, one weight per head element, or one per element of all heads. */
  readonly queryKeyNorm: "none" | "per head" | "whole";
  readonly normsPerLayer: 2 | 4;
  /** Which layers see a sliding window where `layer_types` does not say. */
  readonly window: "none" | "always" | "late layers" | { readonly fullEvery: number };
  readonly isTied?: boolean;
  readonly headDim?: number;
  /** KV heads where the config names none; default as many as heads. */
  readonly numKvHeads?: number;
  /** Experts have biases, and heads sinks (gpt-oss). */
  readonly hasExpertBias?: boolean;
}

const plain: Family = {
  qkvBias: false,
  outputBias: false,
  queryKeyNorm: "none",
  normsPerLayer: 2,
  window: "none",
};

/**
 * Decoders with gated MLPs, by transformers' model_type. A family that is not here is refused: its layers may be of
 * another kind (state spaces, ungated MLPs), and a guess would be a wrong plan. Source: transformers' modeling_*.py.
 */
export const families: Readonly<Record<string, Family>> = {
  llama: { ...plain, qkvBias: "config", outputBias: "config" },
  mistral: { ...plain, window: "always", numKvHeads: 8 },
  mixtral: { ...plain, window: "always", numKvHeads: 8 },
  qwen2: { ...plain, qkvBias: true, window: "late layers" },
  qwen2_moe: { ...plain, qkvBias: true, window: "late layers" },
  qwen3: {
    ...plain,
    qkvBias: "config",
    outputBias: "config",
    queryKeyNorm: "per head",
    window: "late layers",
  },
  qwen3_moe: {
    ...plain,
    qkvBias: "config",
    outputBias: "config",
    queryKeyNorm: "per head",
    window: "late layers",
  },
  gemma: { ...plain, isTied: true, headDim: 256 },
  gemma2: { ...plain, normsPerLayer: 4, window: { fullEvery: 2 }, isTied: true, headDim: 256 },
  gemma3_text: {
    ...plain,
    queryKeyNorm: "per head",
    normsPerLayer: 4,
    window: { fullEvery: 6 },
    isTied: true,
    headDim: 256,
  },
  phi3: { ...plain, window: "always" },
  olmo2: { ...plain, queryKeyNorm: "whole" },
  olmoe: { ...plain, queryKeyNorm: "whole" },
  granite: { ...plain, qkvBias: "config", outputBias: "config" },
  granitemoe: { ...plain, qkvBias: "config", outputBias: "config" },
  smollm3: { ...plain, qkvBias: "config", outputBias: "config", isTied: true },
  deepseek_v2: plain,
  deepseek_v3: plain,
  kimi_k2: plain,
  gpt_oss: { ...plain, qkvBias: true, outputBias: true, window: { fullEvery: 2 }, hasExpertBias: true },
};
