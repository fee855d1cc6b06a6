import { OctavoError } from "@octavo/protocol/errors";

/** How tokens are guessed. Methods, parameters and defaults are those of vLLM's `--speculative-config`. */
export type SpeculativeConfig = NgramConfig | SuffixConfig | DraftModelConfig;

export interface NgramConfig {
  readonly method: "ngram";
  /** Guesses per sequence and step at most; default 5. */
  readonly numSpeculativeTokens?: number | undefined;
  /** Last tokens that must have stood before; default `promptLookupMax`. */
  readonly promptLookupMin?: number | undefined;
  /** As many are enough; default `promptLookupMin`, or 5 where neither is given. */
  readonly promptLookupMax?: number | undefined;
}

export interface SuffixConfig {
  readonly method: "suffix";
  /** Guesses per sequence and step at most; default the depth. */
  readonly numSpeculativeTokens?: number | undefined;
  /** Last tokens that are looked for at most; default 24. */
  readonly suffixDecodingMaxTreeDepth?: number | undefined;
  /** Finished outputs that are remembered for later requests; default 10,000, 0 remembers none. */
  readonly suffixDecodingMaxCachedRequests?: number | undefined;
  /** Guesses at most, per token that matched; default 1. */
  readonly suffixDecodingMaxSpecFactor?: number | undefined;
  /** Guesses end where they are less likely than this, by what followed before; default 0.1. */
  readonly suffixDecodingMinTokenProb?: number | undefined;
}

export interface DraftModelConfig {
  readonly method: "draft_model";
  /** A folder, a `.gguf` file or an id of the hub: a smaller model with the same vocabulary. */
  readonly model: string;
  /** Guesses per sequence and step at most; default 5. */
  readonly numSpeculativeTokens?: number | undefined;
  readonly revision?: string | undefined;
  readonly quantization?: string | undefined;
}

type Resolved<T> = { readonly [Key in keyof T]-?: Exclude<T[Key], undefined> };

export type ResolvedSpeculativeConfig =
  | Resolved<NgramConfig>
  | Resolved<SuffixConfig>
  | (Omit<DraftModelConfig, "numSpeculativeTokens"> & { readonly numSpeculativeTokens: number });

export const speculativeMethods = ["ngram", "suffix", "draft_model"] as const;

const defaultGuesses = 5;
const defaultLookup = 5;
/** Each guess takes a row of the step's budget, and of the output head's. */
const mostGuesses = 128;
const mostDepth = 256;
const mostCachedRequests = 1_000_000;

/** Fills in defaults. Throws `invalid_option` for what cannot be. */
export function resolveSpeculativeConfig(config: SpeculativeConfig): ResolvedSpeculativeConfig {
  const { method } = config;
  if (method === "ngram") return resolveNgram(config);
  if (method === "suffix") return resolveSuffix(config);
  if (method === "draft_model") {
    if (typeof config.model !== "string" || config.model === "")
      throw invalid("model", "must name the draft model: a folder, a .gguf file or a Hugging Face id.");
    return { ...config, numSpeculativeTokens: guesses(config.numSpeculativeTokens ?? defaultGuesses) };
  }
  throw invalid(
    "method",
    `must be one of ${speculativeMethods.join(", ")}, not ${JSON.stringify(method)?.slice(0, 100)}.`,
  );
}

function resolveNgram(config: NgramConfig): ResolvedSpeculativeConfig {
  const promptLookupMax = config.promptLookupMax ?? config.promptLookupMin ?? defaultLookup;
  const promptLookupMin = config.promptLookupMin ?? promptLookupMax;
  integer("prompt_lookup_max", promptLookupMax, 1, mostDepth);
  integer("prompt_lookup_min", promptLookupMin, 1, mostDepth);
  if (promptLookupMin > promptLookupMax)
    throw invalid(
      "prompt_lookup_min",
      `is ${promptLookupMin}, more than prompt_lookup_max, which is ${promptLookupMax}.`,
    );
  const numSpeculativeTokens = guesses(config.numSpeculativeTokens ?? defaultGuesses);
  return { method: "ngram", numSpeculativeTokens, promptLookupMin, promptLookupMax };
}

function resolveSuffix(config: SuffixConfig): ResolvedSpeculativeConfig {
  const {
    suffixDecodingMaxTreeDepth: depth = 24,
    suffixDecodingMaxCachedRequests: cached = 10_000,
    suffixDecodingMaxSpecFactor: factor = 1,
    suffixDecodingMinTokenProb: probability = 0.1,
  } = config;
  integer("suffix_decoding_max_tree_depth", depth, 1, mostDepth);
  integer("suffix_decoding_max_cached_requests", cached, 0, mostCachedRequests);
  if (!(factor >= 0 && factor <= mostGuesses))
    throw invalid("suffix_decoding_max_spec_factor", `must be from 0 to ${mostGuesses}, not ${factor}.`);
  if (!(probability >= 0 && probability <= 1))
    throw invalid("suffix_decoding_min_token_prob", `must be from 0 to 1, not ${probability}.`);
  return {
    method: "suffix",
    numSpeculativeTokens: guesses(config.numSpeculativeTokens ?? Math.min(depth, mostGuesses)),
    suffixDecodingMaxTreeDepth: depth,
    suffixDecodingMaxCachedRequests: cached,
    suffixDecodingMaxSpecFactor: factor,
    suffixDecodingMinTokenProb: probability,
  };
}

function guesses(value: number): number {
  integer("num_speculative_tokens", value, 1, mostGuesses);
  return value;
}

function integer(field: string, value: number, least: number, most: number): void {
  if (!(Number.isSafeInteger(value) && value >= least && value <= most))
    throw invalid(field, `must be an integer from ${least} to ${most}, not ${value}.`);
}

function invalid(field: string, problem: string): OctavoError {
  return new OctavoError("invalid_option", `speculative_config: ${field} ${problem}`, {
    param: "speculative_config",
  });
}
