import { OctavoError } from "@octavo/protocol/errors";
import { fallbackTokenOfByte } from "../byte-alphabet.js";
import type { ModelSpecification } from "../specification.js";
import { TokenSink } from "../token-sink.js";
import type { TokenTable } from "../token-table.js";
import { UnitTrie } from "../unit-trie.js";
import type { SubwordModel } from "./model.js";
import { PieceCache } from "./piece-cache.js";

type UnigramSpecification = Extract<ModelSpecification, { kind: "unigram" }>;

/** SentencePiece's penalty for an unknown character below the worst token. */
const unknownPenalty = 10;
const encoder = new TextEncoder();

/**
 * Unigram language model (Kudo, 2018): the most probable segmentation by Viterbi, with neighbouring unknown
 * characters fused, and written as byte tokens where the vocabulary has them.
 */
export class UnigramModel implements SubwordModel {
  readonly #specification: UnigramSpecification;
  readonly #table: TokenTable;
  readonly #trie = new UnitTrie();
  readonly #unknownScore: number;
  readonly #byteIds: Int32Array;
  readonly #cache = new PieceCache();

  constructor(specification: UnigramSpecification, table: TokenTable) {
    this.#specification = specification;
    this.#table = table;
    for (let id = 0; id < table.size; id++) {
      const token = table.token(id);
      if (token !== undefined && token !== "") this.#trie.set(token, id);
    }
    this.#unknownScore =
      specification.scores.reduce((least, score) => Math.min(least, score), Infinity) - unknownPenalty;
    this.#byteIds = Int32Array.from(
      { length: 256 },
      (_, byte) => table.idOf(fallbackTokenOfByte(byte)) ?? -1,
    );
  }

  encodePiece(piece: string, sink: TokenSink): void {
    let ids = this.#cache.get(piece);
    if (ids === undefined) {
      const own = new TokenSink();
      this.#segment(piece, own);
      ids = own.toArray();
      this.#cache.set(piece, ids);
    }
    sink.pushAll(ids);
  }

  #segment(piece: string, sink: TokenSink): void {
    const length = piece.length;
    const bestScore = new Float64Array(length + 1);
    /** Start of the best token ending at an offset, -1 while none is known. */
    const bestStart = new Int32Array(length + 1).fill(-1);
    const bestId = new Int32Array(length + 1);
    const offer = (end: number, start: number, score: number, id: number): void => {
      if (bestStart[end]! >= 0 && score <= bestScore[end]!) return;
      bestScore[end] = score;
      bestStart[end] = start;
      bestId[end] = id;
    };
    const { scores } = this.#specification;
    const unknownId = this.#specification.unknownId ?? -1;
    for (let start = 0; start < length;) {
      const here = bestScore[start]!;
      const characterEnd = start + (piece.codePointAt(start)! > 0xffff ? 2 : 1);
      let hasSingle = false;
      let node = 0;
      for (let index = start; index < length;) {
        node = this.#trie.child(node, piece.charCodeAt(index++));
        if (node < 0) break;
        const id = this.#trie.value(node);
        if (id < 0) continue;
        offer(index, start, scores[id]! + here, id);
        if (index === characterEnd) hasSingle = true;
      }
      if (!hasSingle) {
        if (unknownId < 0) throw noUnknownToken(piece.slice(start, characterEnd));
        offer(characterEnd, start, this.#unknownScore + here, unknownId);
      }
      start = characterEnd;
    }
    const cuts: number[] = [];
    for (let end = length; end > 0; end = bestStart[end]!) {
      const fuses = cuts.length > 0 && bestId[end] === unknownId && bestId[cuts.at(-1)!] === unknownId;
      if (!fuses) cuts.push(end);
    }
    let start = 0;
    for (const end of cuts.toReversed()) {
      this.#emit(piece.slice(start, end), sink);
      start = end;
    }
  }

  #emit(text: string, sink: TokenSink): void {
    const id = this.#table.idOf(text);
    if (id !== undefined) {
      sink.push(id);
      return;
    }
    if (this.#specification.byteFallback) {
      const bytes = encoder.encode(text);
      if (bytes.every((byte) => this.#byteIds[byte]! >= 0)) {
        for (const byte of bytes) sink.push(this.#byteIds[byte]!);
        return;
      }
    }
    const { unknownId } = this.#specification;
    if (unknownId === undefined) throw noUnknownToken(text);
    sink.push(unknownId);
  }
}

function noUnknownToken(text: string): OctavoError {
  return new OctavoError(
    "invalid_request",
    `The model's vocabulary has no token for ${JSON.stringify(text)} and no unknown token.`,
  );
}
