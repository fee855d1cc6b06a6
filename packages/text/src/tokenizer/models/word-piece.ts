import type { ModelSpecification } from "../specification.js";
import { TokenSink } from "../token-sink.js";
import type { TokenTable } from "../token-table.js";
import type { SubwordModel } from "./model.js";
import { PieceCache } from "./piece-cache.js";

type WordPieceSpecification = Extract<ModelSpecification, { kind: "word-piece" }>;

/** WordPiece (Devlin et al., arXiv 1810.04805): of each word the longest token that it begins with, then of the rest; else unknown. */
export class WordPieceModel implements SubwordModel {
  readonly #specification: WordPieceSpecification;
  readonly #table: TokenTable;
  readonly #cache = new PieceCache();
  /** UTF-16 units of the longest token. */
  readonly #longest: number;

  constructor(specification: WordPieceSpecification, table: TokenTable) {
    this.#specification = specification;
    this.#table = table;
    let longest = 0;
    for (let id = 0; id < table.size; id++) longest = Math.max(longest, table.token(id)?.length ?? 0);
    this.#longest = longest;
  }

  encodePiece(piece: string, sink: TokenSink): void {
    let ids = this.#cache.get(piece);
    if (ids === undefined) {
      ids = this.#segment(piece);
      this.#cache.set(piece, ids);
    }
    sink.pushAll(ids);
  }

  #segment(word: string): Int32Array {
    const { unknownId, maxCharacters, continuingSubwordPrefix } = this.#specification;
    const unknown = Int32Array.of(unknownId);
    if (word.length > maxCharacters && Array.from(word).length > maxCharacters) return unknown;
    const sink = new TokenSink();
    for (let start = 0; start < word.length;) {
      const prefix = start === 0 ? "" : continuingSubwordPrefix;
      let end = Math.min(word.length, start + this.#longest);
      let id: number | undefined;
      for (; end > start; end -= endsWithPair(word, end) ? 2 : 1) {
        id = this.#table.idOf(prefix + word.slice(start, end));
        if (id !== undefined) break;
      }
      if (id === undefined) return unknown;
      sink.push(id);
      start = end;
    }
    return sink.toArray();
  }
}

function endsWithPair(text: string, end: number): boolean {
  return end >= 2 && (text.codePointAt(end - 2) ?? 0) > 0xffff;
}
