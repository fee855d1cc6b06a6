import { OctavoError } from "@octavo/protocol/errors";

/** How tokens are drafted. Methods, parameters and defaults are those of vLLM's `--speculative-config`. */
export type SpeculativeConfig = NgramConfig | SuffixConfig | DraftModelConfig | Eagle3Config | MtpConfig;

/** Speculative decoding by prompt lookup: what followed the last tokens earlier in the same request is the draft. */
export interface NgramConfig {
  readonly method: "ngram";
  /** Draft tokens per sequence and step, at most; default 5. */
  readonly numSpeculativeTokens?: number | undefined;
  /** Shortest suffix that must match, in tokens; default `promptLookupMax`. */
  readonly promptLookupMin?: number | undefined;
  /** A match of this many tokens ends the search; default `promptLookupMin`, or 5 if neither is given. */
  readonly promptLookupMax?: number | undefined;
}

/** Speculative decoding by suffixes of this request and of finished ones (SuffixDecoding, arXiv 2411.04975). */
export interface SuffixConfig {
  readonly method: "suffix";
  /** Draft tokens per sequence and step, at most; default the depth. */
  readonly numSpeculativeTokens?: number | undefined;
  /** Longest suffix that is looked up, in tokens; default 24. */
  readonly suffixDecodingMaxTreeDepth?: number | undefined;
  /** Finished outputs kept for later requests; default 10,000, 0 keeps none. */
  readonly suffixDecodingMaxCachedRequests?: number | undefined;
  /** Draft tokens per matching token, at most; default 1. */
  readonly suffixDecodingMaxSpecFactor?: number | undefined;
  /** A draft ends before its estimated probability falls below this; default 0.1. */
  readonly suffixDecodingMinTokenProb?: number | undefined;
}

/** Speculative decoding with a smaller model that drafts (Leviathan, Kalman and Matias 2023). */
export interface DraftModelConfig {
  readonly method: "draft_model";
  /** A folder, a `.gguf` file or an id of the hub: a smaller model with the same vocabulary. */
  readonly model: string;
  /** Draft tokens per sequence and step, at most; default 5. */
  readonly numSpeculativeTokens?: number | undefined;
  readonly revision?: string | undefined;
  readonly quantization?: string | undefined;
}

/** Speculative decoding with an EAGLE-3 head (arXiv 2503.01840). */
export interface Eagle3Config {
  readonly method: "eagle3";
  /** A folder or an id of the hub: an EAGLE-3 head that was trained with the model. */
  readonly model: string;
  /** Draft tokens per sequence and step, at most; default 5. */
  readonly numSpeculativeTokens?: number | undefined;
  readonly revision?: string | undefined;
}

/** The model's own layer that predicts further tokens. */
export interface MtpConfig {
  readonly method: "mtp";
  /** Draft tokens per sequence and step, at most; default 1, as the layer was trained. */
  readonly numSpeculativeTokens?: number | undefined;
}

type Resolved<T> = { readonly [Key in keyof T]-?: Exclude<T[Key], undefined> };

export type ResolvedSpeculativeConfig =
  | Resolved<NgramConfig>
  | Resolved<SuffixConfig>
  | Resolved<MtpConfig>
  | (Omit<DraftModelConfig, "numSpeculativeTokens"> & { readonly numSpeculativeTokens: number })
  | (Omit<Eagle3Config, "numSpeculativeTokens"> & { readonly numSpeculativeTokens: number });

export const speculativeMethods = ["ngram", "suffix", "draft_model", "eagle3", "mtp"] as const;

const defaultDraftTokens = 5;
const defaultLookup = 5;
/** Each draft token takes a token of the step's budget and a row of the output head. */
const maxDraftTokens = 128;
const maxDepth = 256;
const maxCachedRequests = 1_000_000;

/** Fills in defaults. Throws `invalid_option`. */
export function resolveSpeculativeConfig(config: SpeculativeConfig): ResolvedSpeculativeConfig {
  const { method } = config;
  if (method === "ngram") return resolveNgram(config);
  if (method === "suffix") return resolveSuffix(config);
  if (method === "mtp") return { method, numSpeculativeTokens: draftLimit(config.numSpeculativeTokens ?? 1) };
  if (method === "draft_model" || method === "eagle3") {
    if (typeof config.model !== "string" || config.model === "")
      throw invalid(
        "model",
        method === "eagle3"
          ? "must name the EAGLE-3 head: a folder or a Hugging Face id."
          : "must name the draft model: a folder, a .gguf file or a Hugging Face id.",
      );
    return { ...config, numSpeculativeTokens: draftLimit(config.numSpeculativeTokens ?? defaultDraftTokens) };
  }
  throw invalid(
    "method",
    `must be one of ${speculativeMethods.join(", ")}, not ${JSON.stringify(method)?.slice(0, 100)}.`,
  );
}

function resolveNgram(config: NgramConfig): ResolvedSpeculativeConfig {
  const promptLookupMax = config.promptLookupMax ?? config.promptLookupMin ?? defaultLookup;
  const promptLookupMin = config.promptLookupMin ?? promptLookupMax;
  integer("prompt_lookup_max", promptLookupMax, 1, maxDepth);
  integer("prompt_lookup_min", promptLookupMin, 1, maxDepth);
  if (promptLookupMin > promptLookupMax)
    throw invalid(
      "prompt_lookup_min",
      `is ${promptLookupMin}, more than prompt_lookup_max, which is ${promptLookupMax}.`,
    );
  const numSpeculativeTokens = draftLimit(config.numSpeculativeTokens ?? defaultDraftTokens);
  return { method: "ngram", numSpeculativeTokens, promptLookupMin, promptLookupMax };
}

function resolveSuffix(config: SuffixConfig): ResolvedSpeculativeConfig {
  const {
    suffixDecodingMaxTreeDepth: depth = 24,
    suffixDecodingMaxCachedRequests: cached = 10_000,
    suffixDecodingMaxSpecFactor: factor = 1,
    suffixDecodingMinTokenProb: probability = 0.1,
  } = config;
  integer("suffix_decoding_max_tree_depth", depth, 1, maxDepth);
  integer("suffix_decoding_max_cached_requests", cached, 0, maxCachedRequests);
  if (!(factor >= 0 && factor <= maxDraftTokens))
    throw invalid("suffix_decoding_max_spec_factor", `must be from 0 to ${maxDraftTokens}, not ${factor}.`);
  if (!(probability >= 0 && probability <= 1))
    throw invalid("suffix_decoding_min_token_prob", `must be from 0 to 1, not ${probability}.`);
  return {
    method: "suffix",
    numSpeculativeTokens: draftLimit(config.numSpeculativeTokens ?? Math.min(depth, maxDraftTokens)),
    suffixDecodingMaxTreeDepth: depth,
    suffixDecodingMaxCachedRequests: cached,
    suffixDecodingMaxSpecFactor: factor,
    suffixDecodingMinTokenProb: probability,
  };
}

function draftLimit(value: number): number {
  integer("num_speculative_tokens", value, 1, maxDraftTokens);
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
