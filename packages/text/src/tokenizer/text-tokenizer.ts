import { AddedTokenMatcher } from "./added-tokens.js";
import { byteOfFallbackToken, fromByteAlphabet, toByteAlphabet } from "./byte-alphabet.js";
import { createDecodeChain, type DecodeStage } from "./decoders.js";
import { EncodeWorker } from "./encode-worker-client.js";
import { BpeModel } from "./models/bpe.js";
import type { SubwordModel } from "./models/model.js";
import { ScoredBpeModel } from "./models/scored-bpe.js";
import { UnigramModel } from "./models/unigram.js";
import { WordPieceModel } from "./models/word-piece.js";
import { createNormalizer, type Normalize } from "./normalizers.js";
import { createPreTokenizer, type PreTokenizerPlan } from "./pre-tokenizers.js";
import type {
  AddedTokenSpecification,
  DecoderSpecification,
  TokenizerSpecification,
} from "./specification.js";
import { maxTextPerToken } from "./text-per-token.js";
import { tooManyTokens, TokenSink } from "./token-sink.js";
import { joinPair } from "./join-pair.js";
import { TokenTable } from "./token-table.js";
import type { DecodeOptions, Detokenizer, EncodeOptions, TokenPair, Tokenizer } from "./tokenizer.js";

/** Longer texts (UTF-16 units) are encoded on the worker thread by `encodeAsync`. */
const longText = 8192;
/** Prompt tokens that a detokenizer reads to reconstruct its initial state. */
const promptLookback = 64;

const loneSurrogate = /\p{Surrogate}/gu;
const encoder = new TextEncoder();

/**
 * A tokenizer after Hugging Face's pipeline: added tokens, normaliser, pre-tokenizer, model, post-processor and
 * decoder, each as the specification describes it. Lone surrogates in texts count as U+FFFD.
 */
export class TextTokenizer implements Tokenizer {
  readonly vocabSize: number;
  readonly bosTokenId: number | undefined;
  readonly eosTokenId: number | undefined;
  readonly specialTokenIds: ReadonlySet<number>;

  readonly #specification: TokenizerSpecification;
  readonly #table: TokenTable;
  readonly #addedById = new Map<number, AddedTokenSpecification>();
  readonly #addedIdOf = new Map<string, number>();
  /** Normalised forms of added tokens, where they differ; decoding starts from them. */
  readonly #normalizedForm = new Map<number, string>();
  readonly #plainMatcher: AddedTokenMatcher;
  readonly #normalizedMatcher: AddedTokenMatcher;
  readonly #normalize: Normalize | undefined;
  readonly #plan: PreTokenizerPlan;
  readonly #model: SubwordModel;
  readonly #worker: EncodeWorker;
  #maxTextPerToken: number | undefined;

  constructor(specification: TokenizerSpecification, table = new TokenTable(specification.vocabulary)) {
    this.#specification = specification;
    this.bosTokenId = specification.bosTokenId;
    this.eosTokenId = specification.eosTokenId;
    this.#table = table;
    this.#normalize =
      specification.normalizer === undefined ? undefined : createNormalizer(specification.normalizer);
    this.#plan = createPreTokenizer(specification.preTokenizer);
    this.#model = createModel(specification, table, this.#plan.byteAlphabetPending);

    const { addedTokens } = specification;
    for (const token of addedTokens) {
      this.#addedById.set(token.id, token);
      this.#addedIdOf.set(token.content, token.id);
      const normalized =
        token.normalized && this.#normalize !== undefined ? this.#normalize(token.content) : token.content;
      if (normalized !== token.content) this.#normalizedForm.set(token.id, normalized);
    }
    this.#plainMatcher = new AddedTokenMatcher(
      addedTokens.filter((token) => !token.normalized),
      (token) => token.content,
    );
    this.#normalizedMatcher = new AddedTokenMatcher(
      addedTokens.filter((token) => token.normalized),
      (token) => this.#normalizedForm.get(token.id) ?? token.content,
    );
    this.specialTokenIds = new Set(addedTokens.filter((token) => token.special).map((token) => token.id));
    this.vocabSize = addedTokens.reduce((size, token) => Math.max(size, token.id + 1), table.size);
    this.#worker = new EncodeWorker(specification);
  }

  encode(text: string, options: EncodeOptions = {}): Int32Array {
    return this.encodeUpTo(Infinity, text, options);
  }

  /** As `encode`; throws `context_length_exceeded` as soon as there are more than `maxTokens` ids. */
  encodeUpTo(maxTokens: number, text: string, options: EncodeOptions = {}): Int32Array {
    const sink = new TokenSink(maxTokens);
    const { before, after } = this.#specification.postProcessor;
    const addSpecialTokens = options.addSpecialTokens ?? true;
    if (addSpecialTokens) sink.pushAll(before);
    this.#encodeText(text.replace(loneSurrogate, "\ufffd"), sink);
    if (addSpecialTokens) sink.pushAll(after);
    return sink.toArray();
  }

  joinPair(first: Int32Array, second: Int32Array, maxTokens?: number): TokenPair {
    return joinPair(this.#specification.postProcessor.pair, first, second, maxTokens);
  }

  async encodeAsync(text: string, options: EncodeOptions = {}): Promise<Int32Array> {
    if (text.length < longText) return this.encode(text, options);
    const { maxTokens = Infinity } = options;
    if (maxTokens < Infinity) {
      this.#maxTextPerToken ??= maxTextPerToken(this.#specification, this.#table);
      const least = Math.ceil(text.length / this.#maxTextPerToken);
      if (least > maxTokens) throw tooManyTokens(least, maxTokens);
    }
    return this.#worker.encode(text, options);
  }

  [Symbol.dispose](): void {
    this.#worker[Symbol.dispose]();
  }

  #encodeText(text: string, sink: TokenSink): void {
    const onToken = (id: number): void => sink.push(id);
    if (this.#plainMatcher.isEmpty) {
      if (text !== "") this.#encodePlain(text, true, sink);
      return;
    }
    this.#plainMatcher.split(
      text,
      (start, end) => this.#encodePlain(text.slice(start, end), start === 0, sink),
      onToken,
    );
  }

  #encodePlain(text: string, atTextStart: boolean, sink: TokenSink): void {
    const normalized = this.#normalize === undefined ? text : this.#normalize(text);
    if (this.#normalizedMatcher.isEmpty) {
      this.#encodeNormalized(normalized, atTextStart, sink);
      return;
    }
    this.#normalizedMatcher.split(
      normalized,
      (start, end) => this.#encodeNormalized(normalized.slice(start, end), atTextStart && start === 0, sink),
      (id) => sink.push(id),
    );
  }

  #encodeNormalized(text: string, atTextStart: boolean, sink: TokenSink): void {
    if (text === "") return;
    const model = this.#model;
    this.#plan.preTokenize(text, atTextStart, (piece) => {
      if (piece !== "") model.encodePiece(piece, sink);
    });
  }

  decode(ids: ArrayLike<number>, options: DecodeOptions = {}): string {
    const output = new TextCollector();
    const chain = createDecodeChain(this.#specification.decoder, output);
    const skip = this.#skippedTokens(options);
    for (let index = 0; index < ids.length; index++) this.#feed(ids[index]!, skip, chain);
    chain.end();
    return output.take();
  }

  createDetokenizer(
    options: DecodeOptions & { readonly promptTokens?: ArrayLike<number> } = {},
  ): Detokenizer {
    const output = new TextCollector();
    const chain = createDecodeChain(this.#specification.decoder, output);
    const skip = this.#skippedTokens(options);
    const prompt = options.promptTokens ?? [];
    for (let index = Math.max(0, prompt.length - promptLookback); index < prompt.length; index++)
      this.#feed(prompt[index]!, skip, chain);
    output.take();
    return {
      push: (id) => {
        this.#feed(id, skip, chain);
        return output.take();
      },
      flush: () => {
        chain.end();
        return output.take();
      },
    };
  }

  #skippedTokens({ skipSpecialTokens = true, keptSpecialTokens }: DecodeOptions): (id: number) => boolean {
    if (!skipSpecialTokens) return () => false;
    return (id) => this.specialTokenIds.has(id) && keptSpecialTokens?.has(id) !== true;
  }

  /** Ids without a token are skipped, as in the reference. */
  #feed(id: number, skips: (id: number) => boolean, chain: DecodeStage): void {
    const token = this.#normalizedForm.get(id) ?? this.idToToken(id);
    if (token === undefined || skips(id)) return;
    chain.push(token);
  }

  idToToken(id: number): string | undefined {
    return this.#addedById.get(id)?.content ?? this.#table.token(id);
  }

  tokenToId(token: string): number | undefined {
    return this.#addedIdOf.get(token) ?? this.#table.idOf(token);
  }

  tokenBytes(id: number): Uint8Array {
    const added = this.#addedById.get(id);
    if (added !== undefined) return encoder.encode(added.content);
    const token = this.#table.token(id);
    if (token === undefined) return new Uint8Array(0);
    const kinds = decoderKinds(this.#specification.decoder);
    if (kinds.has("byte-level")) return fromByteAlphabet(token);
    const byte = kinds.has("byte-fallback") ? byteOfFallbackToken(token) : undefined;
    return byte === undefined ? encoder.encode(token.replaceAll("\u2581", " ")) : Uint8Array.of(byte);
  }
}

class TextCollector implements DecodeStage {
  #text = "";

  push(text: string): void {
    this.#text += text;
  }

  end(): void {}

  take(): string {
    const text = this.#text;
    this.#text = "";
    return text;
  }
}

function decoderKinds(decoder: DecoderSpecification | undefined): Set<DecoderSpecification["kind"]> {
  if (decoder === undefined) return new Set();
  if (decoder.kind !== "sequence") return new Set([decoder.kind]);
  return new Set(decoder.items.flatMap((item) => [...decoderKinds(item)]));
}

function createModel(
  specification: TokenizerSpecification,
  table: TokenTable,
  byteAlphabetPending: boolean,
): SubwordModel {
  const { model } = specification;
  if (model.kind === "bpe")
    return new BpeModel(model, table, byteAlphabetPending ? toByteAlphabet : (piece) => piece);
  const inner =
    model.kind === "unigram"
      ? new UnigramModel(model, table)
      : model.kind === "word-piece"
        ? new WordPieceModel(model, table)
        : new ScoredBpeModel(model, table);
  return byteAlphabetPending
    ? { encodePiece: (piece, sink) => inner.encodePiece(toByteAlphabet(piece), sink) }
    : inner;
}
