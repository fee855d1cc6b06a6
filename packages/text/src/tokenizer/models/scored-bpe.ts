import { fallbackTokenOfByte } from "../byte-alphabet.js";
import type { ModelSpecification } from "../specification.js";
import { TokenSink } from "../token-sink.js";
import type { TokenTable } from "../token-table.js";
import { NumberHeap, positionRange } from "./merge.js";
import { forEachWord, neverCrossesMetaspace } from "./metaspace-cuts.js";
import type { SubwordModel } from "./model.js";
import { PieceCache } from "./piece-cache.js";

type ScoredBpeSpecification = Extract<ModelSpecification, { kind: "scored-bpe" }>;

const encoder = new TextEncoder();

/**
 * SentencePiece's BPE as GGUF carries it (llama.cpp's `llama` vocabulary): no merge list, but neighbours merge when
 * their joined text is a token, highest score first, leftmost among equals. Characters without a token become bytes.
 */
export class ScoredBpeModel implements SubwordModel {
  readonly #table: TokenTable;
  /** Place of a token among all by falling score; equal scores share a place. */
  readonly #rankOf: Int32Array;
  readonly #byteIds: Int32Array;
  readonly #unknownId: number | undefined;
  readonly #longest: number;
  readonly #cutsAtMetaspace: boolean;
  readonly #cache = new PieceCache();

  constructor(specification: ScoredBpeSpecification, table: TokenTable) {
    this.#table = table;
    this.#unknownId = specification.unknownId;
    this.#rankOf = rankByScore(specification.scores);
    this.#byteIds = Int32Array.from(
      { length: 256 },
      (_, byte) => table.idOf(fallbackTokenOfByte(byte)) ?? -1,
    );
    let longest = 0;
    for (const token of table.tokens()) longest = Math.max(longest, token.length);
    this.#longest = longest;
    this.#cutsAtMetaspace = neverCrossesMetaspace(table.tokens());
  }

  encodePiece(piece: string, sink: TokenSink): void {
    if (this.#cutsAtMetaspace) forEachWord(piece, (word) => this.#encodeWord(word, sink));
    else this.#encodeWord(piece, sink);
  }

  #encodeWord(word: string, sink: TokenSink): void {
    let ids = this.#cache.get(word);
    if (ids === undefined) {
      ids = this.#merge(word);
      this.#cache.set(word, ids);
    }
    sink.pushAll(ids);
  }

  #merge(word: string): Int32Array {
    // symbol i covers word[i .. end[i]); only offsets where a symbol starts are used
    const length = word.length;
    const end = new Int32Array(length + 1);
    const previous = new Int32Array(length + 1).fill(-1);
    for (let index = 0, before = -1; index < length;) {
      const next = index + (word.codePointAt(index)! > 0xffff ? 2 : 1);
      end[index] = next;
      previous[index] = before;
      before = index;
      index = next;
    }
    const heap = new NumberHeap(length);
    const pairRank = (left: number): number => {
      const middle = end[left]!;
      if (middle >= length) return -1;
      const right = end[middle]!;
      if (right - left > this.#longest) return -1;
      const id = this.#table.idOf(word.slice(left, right));
      return id === undefined ? -1 : this.#rankOf[id]!;
    };
    for (let index = 0; index < length; index = end[index]!) {
      const rank = pairRank(index);
      if (rank >= 0) heap.append(rank * positionRange + index);
    }
    heap.heapify();
    const consider = (left: number): void => {
      const rank = pairRank(left);
      if (rank >= 0) heap.push(rank * positionRange + left);
    };
    while (heap.size > 0) {
      const key = heap.pop();
      const rank = Math.floor(key / positionRange);
      const left = key - rank * positionRange;
      // stale when the left symbol was merged away or the pair there has changed
      if (end[left] === 0 || pairRank(left) !== rank) continue;
      const middle = end[left]!;
      const right = end[middle]!;
      end[left] = right;
      end[middle] = 0;
      if (right < length) {
        previous[right] = left;
        consider(left);
      }
      if (previous[left]! >= 0) consider(previous[left]!);
    }
    const sink = new TokenSink();
    for (let index = 0; index < length; index = end[index]!) this.#emit(word.slice(index, end[index]), sink);
    return sink.toArray();
  }

  #emit(symbol: string, sink: TokenSink): void {
    const id = this.#table.idOf(symbol);
    if (id !== undefined) {
      sink.push(id);
      return;
    }
    for (const byte of encoder.encode(symbol)) {
      const byteId = this.#byteIds[byte]!;
      if (byteId >= 0) sink.push(byteId);
      else if (this.#unknownId !== undefined) sink.push(this.#unknownId);
    }
  }
}

function rankByScore(scores: Float64Array): Int32Array {
  const order = Array.from(scores.keys()).sort((a, b) => scores[b]! - scores[a]!);
  const ranks = new Int32Array(scores.length);
  let rank = -1;
  let last = NaN;
  for (const id of order) {
    if (scores[id] !== last) rank++;
    last = scores[id]!;
    ranks[id] = rank;
  }
  return ranks;
}
