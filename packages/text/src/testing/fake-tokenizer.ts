import type {
  DecodeOptions,
  Detokenizer,
  EncodeOptions,
  TokenPair,
  Tokenizer,
} from "../tokenizer/tokenizer.js";

export interface FakeTokenizerOptions {
  /** Token `id` stands for the bytes of `pieces[id]`. */
  readonly pieces: readonly (string | Uint8Array)[];
  readonly specialTokenIds?: readonly number[];
  readonly eosTokenId?: number;
}

/** A tokenizer whose vocabulary a test spells out; encodes by longest match and drops bytes that no piece begins with. */
export class FakeTokenizer implements Tokenizer {
  readonly vocabSize: number;
  readonly bosTokenId = undefined;
  readonly eosTokenId: number | undefined;
  readonly specialTokenIds: ReadonlySet<number>;
  readonly #pieces: readonly Uint8Array[];

  constructor(options: FakeTokenizerOptions) {
    this.#pieces = options.pieces.map((piece) => (typeof piece === "string" ? Buffer.from(piece) : piece));
    this.vocabSize = this.#pieces.length;
    this.eosTokenId = options.eosTokenId;
    this.specialTokenIds = new Set(options.specialTokenIds);
  }

  joinPair(first: Int32Array, second: Int32Array): TokenPair {
    return { tokens: Int32Array.from([...first, ...second]), secondFrom: undefined };
  }

  encode(text: string, _options?: EncodeOptions): Int32Array {
    const bytes = Buffer.from(text);
    const ids: number[] = [];
    for (let offset = 0; offset < bytes.length;) {
      let best = -1;
      let length = 0;
      for (const [id, piece] of this.#pieces.entries()) {
        if (piece.length > length && bytes.subarray(offset, offset + piece.length).equals(piece)) {
          best = id;
          length = piece.length;
        }
      }
      if (best !== -1) ids.push(best);
      offset += Math.max(1, length);
    }
    return Int32Array.from(ids);
  }

  encodeAsync(text: string, options?: EncodeOptions): Promise<Int32Array> {
    return Promise.resolve(this.encode(text, options));
  }

  decode(ids: ArrayLike<number>, options?: DecodeOptions): string {
    const detokenizer = this.createDetokenizer(options);
    return Array.from(ids, (id) => detokenizer.push(id)).join("") + detokenizer.flush();
  }

  idToToken(id: number): string | undefined {
    const piece = this.#pieces[id];
    return piece === undefined ? undefined : Buffer.from(piece).toString();
  }

  tokenToId(token: string): number | undefined {
    const id = this.#pieces.findIndex((piece) => Buffer.from(token).equals(piece));
    return id === -1 ? undefined : id;
  }

  tokenBytes(id: number): Uint8Array {
    return this.#pieces[id] ?? new Uint8Array();
  }

  createDetokenizer(options: DecodeOptions = {}): Detokenizer {
    const decoder = new TextDecoder();
    const { skipSpecialTokens = true } = options;
    return {
      push: (id) =>
        skipSpecialTokens && this.specialTokenIds.has(id)
          ? ""
          : decoder.decode(this.tokenBytes(id), { stream: true }),
      flush: () => decoder.decode(),
    };
  }
}
