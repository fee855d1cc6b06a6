/** Text to token ids and back. Implementations are pure and reentrant; one instance serves all requests. */
export interface Tokenizer {
  /** Ids run over [0, vocabSize), added tokens included. */
  readonly vocabSize: number;
  readonly bosTokenId: number | undefined;
  readonly eosTokenId: number | undefined;
  /** Ids that `skipSpecialTokens` leaves out. */
  readonly specialTokenIds: ReadonlySet<number>;

  /** Runs in time linear in the text (a log factor inside unbroken runs). */
  encode(text: string, options?: EncodeOptions): Int32Array;
  /** As `encode`; long texts are tokenised on a worker thread so that the event loop stays free. */
  encodeAsync(text: string, options?: EncodeOptions): Promise<Int32Array>;
  /**
   * Two texts as one sequence, from their ids without special tokens, as the tokenizer's template of pairs says. With `maxTokens`, the
   * longer one loses its last ids, then both alike, until all fit. Throws `artifact_unsupported` where the template is not known.
   */
  joinPair(first: Int32Array, second: Int32Array, maxTokens?: number): TokenPair;
  decode(ids: ArrayLike<number>, options?: DecodeOptions): string;
  /** The token as written in the vocabulary, undefined for an unused id. */
  idToToken(id: number): string | undefined;
  tokenToId(token: string): number | undefined;
  /** The bytes a token stands for; what `logprobs.content[].bytes` reports. */
  tokenBytes(id: number): Uint8Array;
  createDetokenizer(options?: DecodeOptions & { readonly promptTokens?: ArrayLike<number> }): Detokenizer;
  /** Ends the worker thread of `encodeAsync` immediately; pending texts fail. */
  [Symbol.dispose]?(): void;
}

export interface TokenPair {
  readonly tokens: Int32Array;
  /** Where tokens of type 1 begin; undefined where the model makes no difference. */
  readonly secondFrom: number | undefined;
}

/** How a text becomes ids. */
export interface EncodeOptions {
  /** Add what the post-processor adds (BOS, for example); default true. */
  readonly addSpecialTokens?: boolean;
  /**
   * Texts that `encodeAsync` hands to its worker thread are not encoded further than this many ids; one that has more fails
   * with `context_length_exceeded`.
   */
  readonly maxTokens?: number | undefined;
  /** For whom: tenants' long texts take turns. */
  readonly tenant?: string | undefined;
  /** Ends `encodeAsync` with `request_cancelled`. */
  readonly signal?: AbortSignal | undefined;
}

/** How ids become text again. */
export interface DecodeOptions {
  /** Default true. */
  readonly skipSpecialTokens?: boolean;
  /** Special tokens whose text is kept although others are skipped, such as markup for an output parser. */
  readonly keptSpecialTokens?: ReadonlySet<number>;
}

/** Incremental detokenisation: the concatenation of all pieces equals `decode` of all ids; no piece ends in half a character. */
export interface Detokenizer {
  /** Text that became certain with this token; often empty inside a multi-token character. */
  push(id: number): string;
  /** What is still held back, with U+FFFD for bytes that never completed. */
  flush(): string;
}
