import { fallbackTokenOfByte } from "../byte-alphabet.js";
import type { ModelSpecification } from "../specification.js";
import type { TokenSink } from "../token-sink.js";
import type { TokenTable } from "../token-table.js";
import { mergeSymbols } from "./merge.js";
import { MergeTable } from "./merge-table.js";
import { forEachWord, metaspace, neverCrossesMetaspace } from "./metaspace-cuts.js";
import type { SubwordModel } from "./model.js";
import { PieceCache } from "./piece-cache.js";

type BpeSpecification = Extract<ModelSpecification, { kind: "bpe" }>;

const encoder = new TextEncoder();

/**
 * Byte-pair encoding over ranked merges, as Hugging Face's BPE model: characters become symbols (with byte fallback
 * or the unknown token for those the vocabulary lacks), then pairs merge, lowest rank first.
 */
export class BpeModel implements SubwordModel {
  readonly #specification: BpeSpecification;
  readonly #tokens: TokenTable;
  /** Made for the first word that has something to merge. */
  #table: MergeTable | undefined;
  readonly #cache = new PieceCache();
  readonly #prepare: (piece: string) => string;
  readonly #cutsAtMetaspace: boolean;
  /** Ids of the byte tokens, when all 256 of them that are asked for exist. */
  readonly #byteIds: Int32Array;
  #symbols = new Int32Array(256);
  #count = 0;

  /** `prepare` maps a piece before the vocabulary sees it (the byte alphabet); cached with the piece's ids. */
  constructor(specification: BpeSpecification, tokens: TokenTable, prepare: (piece: string) => string) {
    this.#specification = specification;
    this.#tokens = tokens;
    this.#prepare = prepare;
    this.#byteIds = Int32Array.from(
      { length: 256 },
      (_, byte) => tokens.idOf(fallbackTokenOfByte(byte)) ?? -1,
    );
    this.#cutsAtMetaspace = cutsAtMetaspace(specification, tokens);
  }

  encodePiece(piece: string, sink: TokenSink): void {
    if (!this.#cutsAtMetaspace) {
      this.#encodeWord(piece, sink);
      return;
    }
    forEachWord(piece, (word) => this.#encodeWord(word, sink));
  }

  #encodeWord(word: string, sink: TokenSink): void {
    const cached = this.#cache.get(word);
    if (cached !== undefined) {
      if (cached.length === 1) sink.push(cached[0]!);
      else sink.pushAll(cached);
      return;
    }
    const ids = this.#mergeWord(this.#prepare(word));
    this.#cache.set(word, ids);
    sink.pushAll(ids);
  }

  #mergeWord(word: string): Int32Array {
    if (this.#specification.ignoreMerges) {
      const whole = this.#tokens.idOf(word);
      if (whole !== undefined) return Int32Array.of(whole);
    }
    this.#count = 0;
    this.#addSymbols(word);
    this.#table ??= new MergeTable(this.#specification.merges);
    const count = mergeSymbols(this.#symbols, this.#count, this.#table);
    const ids = this.#symbols.slice(0, count);
    if (this.#symbols.length > 65_536) this.#symbols = new Int32Array(256);
    return ids;
  }

  #addSymbols(word: string): void {
    const { continuingSubwordPrefix, endOfWordSuffix, fuseUnknown, byteFallback, unknownId } =
      this.#specification;
    const tokens = this.#tokens;
    let pendingUnknown = false;
    const flushUnknown = (): void => {
      if (pendingUnknown) this.#add(unknownId!);
      pendingUnknown = false;
    };
    for (let index = 0; index < word.length;) {
      const codePoint = word.codePointAt(index)!;
      const end = index + (codePoint > 0xffff ? 2 : 1);
      let symbol = word.slice(index, end);
      if (index > 0) symbol = continuingSubwordPrefix + symbol;
      if (end === word.length) symbol += endOfWordSuffix;
      index = end;
      const id = tokens.idOf(symbol);
      if (id !== undefined) {
        flushUnknown();
        this.#add(id);
        continue;
      }
      if (byteFallback) {
        const bytes = encoder.encode(symbol);
        if (bytes.every((byte) => this.#byteIds[byte]! >= 0)) {
          // an unknown character waiting before this one comes out after its bytes, as in the reference
          for (const byte of bytes) this.#add(this.#byteIds[byte]!);
          continue;
        }
      }
      if (unknownId === undefined) continue;
      if (!fuseUnknown) flushUnknown();
      pendingUnknown = true;
    }
    flushUnknown();
  }

  #add(id: number): void {
    if (this.#count === this.#symbols.length) {
      const larger = new Int32Array(this.#count * 2);
      larger.set(this.#symbols);
      this.#symbols = larger;
    }
    this.#symbols[this.#count++] = id;
  }
}

function cutsAtMetaspace(specification: BpeSpecification, tokens: TokenTable): boolean {
  if (
    specification.ignoreMerges ||
    specification.continuingSubwordPrefix !== "" ||
    specification.endOfWordSuffix !== ""
  )
    return false;
  if (tokens.idOf(metaspace) === undefined) return false;
  const isMerged = new Uint8Array(tokens.size);
  for (let index = 2; index < specification.merges.length; index += 3)
    isMerged[specification.merges[index]!] = 1;
  const merged = function* (): Generator<string> {
    for (const id of tokens.idsWithInside(metaspace)) if (isMerged[id] === 1) yield tokens.token(id) ?? "";
  };
  return neverCrossesMetaspace(merged());
}
