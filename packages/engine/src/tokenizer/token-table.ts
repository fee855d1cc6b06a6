import type { Vocabulary } from "./specification.js";

/**
 * A vocabulary to look up in, both ways, over its one text: an open-addressing hash table of ids, built without a string per token,
 * of which there can be a quarter of a million at every start.
 */
export class TokenTable {
  /** Ids that have the same token, of the first such token; the last id is the one that is found. */
  readonly twice: readonly [first: number, second: number] | undefined;
  readonly #vocabulary: Vocabulary;
  /** Id + 1; 0 is free. */
  readonly #slots: Int32Array;
  readonly #hashes: Int32Array;
  readonly #mask: number;

  constructor(vocabulary: Vocabulary) {
    const { text, ends, used } = vocabulary;
    this.#vocabulary = vocabulary;
    let capacity = 16;
    while (capacity < ends.length * 2) capacity *= 2;
    this.#mask = capacity - 1;
    this.#slots = new Int32Array(capacity);
    this.#hashes = new Int32Array(ends.length);
    let twice: [number, number] | undefined;
    for (let id = 0, start = 0; id < ends.length; id++) {
      const end = ends[id]!;
      if (used[id] === 1) {
        const hash = hashOf(text, start, end, end);
        this.#hashes[id] = hash;
        const slot = this.#slotOf(hash, text, start, end, end);
        const other = this.#slots[slot]! - 1;
        if (other >= 0) twice ??= [other, id];
        this.#slots[slot] = id + 1;
      }
      start = end;
    }
    this.twice = twice;
  }

  /** Ids from 0 on, those without a token counted. */
  get size(): number {
    return this.#vocabulary.ends.length;
  }

  token(id: number): string | undefined {
    const { text, ends, used } = this.#vocabulary;
    return used[id] === 1 ? text.slice(this.#startOf(id), ends[id]) : undefined;
  }

  /** Of all ids that have one. */
  *tokens(): Generator<string> {
    for (let id = 0; id < this.size; id++) {
      const token = this.token(id);
      if (token !== undefined) yield token;
    }
  }

  idOf(token: string): number | undefined {
    const id = this.find(token, 0, token.length);
    return id < 0 ? undefined : id;
  }

  /** The id of the token that `text` has from `start` to `end`, the unit at `gap` left out where that is between them; -1 for none. */
  find(text: string, start: number, end: number, gap = end): number {
    return this.#slots[this.#slotOf(hashOf(text, start, end, gap), text, start, end, gap)]! - 1;
  }

  /** Where the token is, or would be put. */
  #slotOf(hash: number, text: string, start: number, end: number, gap: number): number {
    let slot = (hash ^ (hash >>> 15)) & this.#mask;
    for (;;) {
      const id = this.#slots[slot]! - 1;
      if (id < 0 || (this.#hashes[id] === hash && this.is(id, text, start, end, gap))) return slot;
      slot = (slot + 1) & this.#mask;
    }
  }

  /** Whether an id has the token that `find` looks for with the same arguments. */
  is(id: number, text: string, start: number, end: number, gap: number): boolean {
    const { text: own, ends, used } = this.#vocabulary;
    if (used[id] !== 1) return false;
    let at = this.#startOf(id);
    if (ends[id]! - at !== end - start - (gap < end ? 1 : 0)) return false;
    for (let index = start; index < end; index++) {
      if (index !== gap && own.charCodeAt(at++) !== text.charCodeAt(index)) return false;
    }
    return true;
  }

  #startOf(id: number): number {
    return id === 0 ? 0 : this.#vocabulary.ends[id - 1]!;
  }
}

/** FNV-1a over UTF-16 units, with a last mixing of the high bits into the low ones left to whoever masks it. */
function hashOf(text: string, start: number, end: number, gap: number): number {
  let hash = 0x811c9dc5 | 0;
  for (let index = start; index < end; index++) {
    if (index !== gap) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  }
  return hash;
}
