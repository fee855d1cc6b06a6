import type { Adapter, SamplerState } from "./handles.js";

export interface SamplerStateSpec {
  readonly promptTokens: Int32Array;
  /** Already generated, when a sequence is resumed. */
  readonly outputTokens: Int32Array;
  readonly logitBias?: { readonly ids: Int32Array; readonly values: Float32Array };
  readonly allowedTokens?: Int32Array;
  readonly badWords?: readonly Int32Array[];
  /** Not sampled while the row's `suppressStops` is set (min_tokens). */
  readonly stopTokens?: Int32Array;
  readonly repetitionPenalty: number;
  readonly frequencyPenalty: number;
  readonly presencePenalty: number;
}

/**
 * Sampling parameters of one output row. Ties go to the lowest id: in greedy choice, at the border of top-k (exactly k
 * tokens stay) and at that of top-p. Order follows vLLM: raw logprobs, mask, allowed ids, bad words, stop suppression,
 * bias, penalties, greedy or temperature, min-p, top-k, top-p, then one draw keyed by (seed, index).
 */
export interface RowSampling {
  /** 0 means greedy. */
  readonly temperature: number;
  readonly topP: number;
  /** 0 means off. */
  readonly topK: number;
  readonly minP: number;
  readonly seed: bigint;
  /** Position of the drawn token within the sequence's output; keys the random stream. */
  readonly index: number;
  readonly state?: SamplerState;
  readonly suppressStops?: boolean;
  /**
   * Tokens that may be sampled: bit `id & 31` of word `id >> 5`, ceil(vocab / 32) words. Read when the step is handed
   * over; the caller may change it then.
   */
  readonly mask?: Uint32Array | undefined;
}

/** What to do with one output row. */
export type OutputRow =
  | {
      readonly kind: "sample";
      readonly sampling: RowSampling;
      readonly numLogprobs: number | undefined;
      readonly logprobIds?: Int32Array;
      /**
       * The row's token is a draft token: it predicts what the row before, of the token before, samples. The row is sampled only
       * if that row sampled this very token; otherwise its result is token -1 and nothing more, and its state is unchanged. Rows
       * of one run of draft tokens are sampled in order and may share a state.
       */
      readonly afterDraft?: boolean;
      /** Also give the digest of the row's raw logits. */
      readonly wantDigest?: boolean;
    }
  /** Logprob and rank of `target` under the row's raw distribution (prompt_logprobs). */
  | { readonly kind: "score"; readonly target: number; readonly numLogprobs: number }
  /** The normalised hidden state (embeddings). */
  | { readonly kind: "hidden"; readonly pool?: RowPooling };

/** In place of a token's row, `gather` takes the mean of `tokens` rows that end with it, or the largest of them in each column. */
export interface RowPooling {
  readonly kind: "mean" | "max";
  readonly tokens: number;
}

/**
 * What a step does with slots of recurrent state. A sequence starts from the state in `sources`, which stands for its first `starts`
 * tokens; what it computed since, at most the cache's `maxDraftTokens`, is kept beside it. Its own slot then stands for `ends` tokens:
 * what the step computes behind them may be taken back. Arrays may be longer than `numSequences` says.
 */
export interface StepStates {
  /** `[numSequences]`, the slot of each sequence; no two are equal. */
  readonly slots: Int32Array;
  /** `[numSequences]`, its own slot, or one that nothing writes in this step; -1 for a sequence that starts from nothing. */
  readonly sources: Int32Array;
  /** `[numSequences]` */
  readonly starts: Int32Array;
  readonly ends: Int32Array;
  /** `[numSequences + 1]`, of the arrays below. */
  readonly snapshotStarts: Int32Array;
  /** Ascending within a sequence, above its `starts` and at most its `ends`: after so many tokens its state is copied... */
  readonly snapshotPositions: Int32Array;
  /** ...into this slot. */
  readonly snapshotSlots: Int32Array;
}

/** What stands for tokens that are no text. */
export interface GivenRows {
  /** Indexes of tokens of the step, ascending. */
  readonly tokens: Int32Array;
  /** `[tokens.length, width]` */
  readonly rows: Float32Array;
  /** For each of the program's `add_given` ops in turn `[tokens.length, width]`; needed where it has any. */
  readonly added?: Float32Array;
}

/** One step. Arrays may be longer than the counts say; the caller leaves them alone until the step resolves. */
export interface StepPlan {
  readonly numTokens: number;
  readonly numSequences: number;
  readonly tokenIds: Int32Array;
  readonly positions: Int32Array;
  /** `[numTokens]`, 0 for tokens of a first text and 1 for those of a second; absent where all are 0. */
  readonly tokenTypes?: Int32Array;
  /**
   * `[numTokens]`, context position of the last token that each token sees: itself, or one that its sequence has after the step. Absent
   * where all see up to themselves. Attention ops that look ahead may see more.
   */
  readonly lastSeen?: Int32Array;
  /**
   * `[numTokens, 3]`, where each token stands along time, height and width, for rotations that tell them apart; absent where each is its
   * position.
   */
  readonly axes?: Int32Array;
  /** Rows in the place of tokens' embedded ids, for the program's op that takes them. */
  readonly given?: GivenRows;
  /** Where each token's k and v go: block * blockSize + offset. */
  readonly slots: Int32Array;
  /** `[numSequences + 1]`, token index at which each sequence's queries start. */
  readonly queryStarts: Int32Array;
  /** `[numSequences]`, tokens visible after this step. */
  readonly contextLengths: Int32Array;
  /** Block ids of all sequences, one after another; sequence s owns `[blockTableStarts[s], blockTableStarts[s + 1])`. */
  readonly blockTables: Int32Array;
  readonly blockTableStarts: Int32Array;
  /** `[numSequences]`, the adapter of each sequence, made for this program; absent when none has one. */
  readonly adapters?: readonly (Adapter | undefined)[];
  /** Needed where the program has recurrent ops. */
  readonly states?: StepStates;
  /** Token index of each output row, ascending; a token may stand more than once. */
  readonly outputTokens: Int32Array;
  readonly outputs: readonly OutputRow[];
  /** For each of the program's `receive` ops in turn `[numTokens, width]`; needed where it has any. */
  readonly received?: Float32Array;
  /**
   * Runs one of so many parts of the program's ops, in order, so that other programs' steps run between them. All parts have the same
   * tokens, no other step of the program comes between, and the last one alone has output rows. Only where the backend takes given rows.
   */
  readonly part?: { readonly index: number; readonly count: number };
  /** Also return the raw logits of all sample and score rows (tests, comparisons). */
  readonly wantLogits?: boolean;
  /** Leaves `sent` out of the result: nobody reads it. */
  readonly withoutSent?: boolean;
  /** Also tell what each kind of op took, which costs time of its own. Only where the backend times ops. */
  readonly wantOpTimes?: boolean;
}

/**
 * Why one row has no result; the step's other rows are good, and the row's sampler state is left as it was.
 * `non_finite_logits`: a logit or, in a hidden row, the state is NaN or infinite. `no_token_allowed`: mask, allowed ids, bad words, stop
 * suppression and bias left nothing to sample.
 */
export type RowError = "non_finite_logits" | "no_token_allowed";

export interface RowResult {
  /** Sampled or scored token; -1 for hidden rows, rows in error and rows after a rejected draft token. */
  readonly token: number;
  readonly error?: RowError;
  /** Raw log-probability of `token`, present when logprobs were asked for. */
  readonly logprob?: number;
  /** 1 is the most likely token. */
  readonly rank?: number;
  /** Most likely tokens, best first. */
  readonly topTokens?: Int32Array;
  readonly topLogprobs?: Float32Array;
  /** Logprobs of the row's `logprobIds`, in their order. */
  readonly idLogprobs?: Float32Array;
  readonly hidden?: Float32Array;
  /** `[vocab]` */
  readonly logits?: Float32Array;
  /**
   * If the row wanted it and has no error: XXH64 of its raw logits as little-endian floats, 16 hexadecimal digits. Equal
   * digests are equal bits, but for one chance in 2^64.
   */
  readonly digest?: string;
}

export interface RankExchange {
  readonly bytes: number;
  /** Copies, and waits for slower ranks. */
  readonly milliseconds: number;
}

/** What the ops of one kind took in a step, on the first rank where several run it. */
export interface OpTime {
  /** The kind's name in programs; `head` for the output head and what samples, `adapter` for LoRA where that runs apart. */
  readonly op: string;
  /** How many ran; on a GPU, in so many dispatches. */
  readonly count: number;
  readonly milliseconds: number;
}

export interface StepResult {
  readonly rows: readonly RowResult[];
  /** Native wall time of the step, ms. */
  readonly computeMs: number;
  /** For each of the program's `send` ops in turn `[numTokens, width]`. */
  readonly sent?: Float32Array;
  /** What each rank got from the others, of a program that ranks run together. */
  readonly exchanges?: readonly RankExchange[];
  /** Of a plan that wanted them, one for each kind of op that ran. */
  readonly opTimes?: readonly OpTime[];
}
