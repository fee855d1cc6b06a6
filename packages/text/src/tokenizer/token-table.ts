import type { PackedStrings } from "../files/gguf-strings.js";

/** The model's tokens by id; `used[id]` is 0 for ids without a token. */
export interface Vocabulary extends PackedStrings {
  readonly used: Uint8Array;
}

const encoder = new TextEncoder();

/**
 * Looks tokens up by id and by text over the packed bytes of a vocabulary: an open-addressing hash table of ids. It is built
 * without making a string per token, of which there can be a quarter of a million at every start.
 */
export class TokenTable {
  /** Two ids of the first duplicate token; lookups find the last one. */
  readonly twice: readonly [first: number, second: number] | undefined;
  readonly #vocabulary: Vocabulary;
  readonly #bytes: Buffer;
  /** Pairs (hash, id + 1); an id of 0 is free. */
  readonly #slots: Int32Array;
  readonly #mask: number;
  /** Room for the longest token. */
  readonly #wanted: Uint8Array;

  constructor(vocabulary: Vocabulary) {
    const { starts, gap, used } = vocabulary;
    const size = starts.length - 1;
    const { buffer, byteOffset, byteLength } = vocabulary.bytes;
    const bytes = Buffer.from(buffer, byteOffset, byteLength);
    this.#vocabulary = vocabulary;
    this.#bytes = bytes;
    let capacity = 16;
    while (capacity < size * 2) capacity *= 2;
    this.#mask = capacity - 1;
    const slots = new Int32Array(capacity * 2);
    this.#slots = slots;
    let longest = 0;
    let twice: [number, number] | undefined;
    for (let id = 0; id < size; id++) {
      if (used[id] === 0) continue;
      const start = starts[id]!;
      const end = starts[id + 1]! - gap;
      if (end - start > longest) longest = end - start;
      const hash = hashOf(bytes, start, end);
      const slot = this.#slotOf(hash, bytes, start, end);
      const other = slots[slot + 1]! - 1;
      if (other >= 0) twice ??= [other, id];
      slots[slot] = hash;
      slots[slot + 1] = id + 1;
    }
    this.twice = twice;
    // The same class as the vocabulary's bytes, so that code which reads both stays fast.
    this.#wanted = Buffer.alloc(longest);
  }

  /** Ids from 0 on, those without a token counted. */
  get size(): number {
    return this.#vocabulary.starts.length - 1;
  }

  token(id: number): string | undefined {
    const { starts, gap, used } = this.#vocabulary;
    return used[id] === 1 ? this.#bytes.toString("utf8", starts[id], starts[id + 1]! - gap) : undefined;
  }

  /** Texts of all ids that have one. */
  *tokens(): Generator<string> {
    for (let id = 0; id < this.size; id++) {
      const token = this.token(id);
      if (token !== undefined) yield token;
    }
  }

  /** Lone surrogates count as U+FFFD. */
  idOf(token: string): number | undefined {
    const wanted = this.#wanted;
    const id = this.find(wanted, 0, writeUtf8(token, wanted));
    return id < 0 ? undefined : id;
  }

  /** The id of the token that `bytes` have from `start` to `end`; -1 for none. */
  find(bytes: Uint8Array, start: number, end: number): number {
    return this.#slots[this.#slotOf(hashOf(bytes, start, end), bytes, start, end) + 1]! - 1;
  }

  /** The id of the token that is `bytes` from `start` to `cut` and then from `cut + 1` to `end`; `likely` is tried first. -1 for none. */
  findJoined(bytes: Uint8Array, start: number, cut: number, end: number, likely: number): number {
    if (this.#isJoined(likely, bytes, start, cut, end)) return likely;
    const wanted = this.#wanted;
    if (end - start - 1 > wanted.length) return -1;
    let length = 0;
    for (let at = start; at < end; at++) if (at !== cut) wanted[length++] = bytes[at]!;
    return this.find(wanted, 0, length);
  }

  /** Ids of the tokens that contain `text` anywhere but at their beginning. */
  *idsWithInside(text: string): Generator<number> {
    const { starts, gap, used } = this.#vocabulary;
    const bytes = this.#bytes;
    const part = Buffer.from(text);
    let id = 0;
    for (let at = bytes.indexOf(part); at >= 0; at = bytes.indexOf(part, at + 1)) {
      while (id < this.size && starts[id + 1]! - gap <= at) id++;
      if (id < this.size && at > starts[id]! && used[id] === 1) yield id;
    }
  }

  /** The id of the token that two others spell one after the other; -1 for none. */
  findPair(first: number, second: number): number {
    const { starts, gap } = this.#vocabulary;
    const wanted = this.#wanted;
    const bytes = this.#bytes;
    let length = 0;
    const firstEnd = starts[first + 1]! - gap;
    const secondEnd = starts[second + 1]! - gap;
    if (firstEnd - starts[first]! + secondEnd - starts[second]! > wanted.length) return -1;
    for (let at = starts[first]!; at < firstEnd; at++) wanted[length++] = bytes[at]!;
    for (let at = starts[second]!; at < secondEnd; at++) wanted[length++] = bytes[at]!;
    return this.find(wanted, 0, length);
  }

  #isJoined(id: number, bytes: Uint8Array, start: number, cut: number, end: number): boolean {
    const own = this.#bytes;
    const { starts, gap, used } = this.#vocabulary;
    if (used[id] !== 1) return false;
    let at = starts[id]!;
    if (starts[id + 1]! - gap - at !== end - start - 1) return false;
    for (let index = start; index < end; index++) {
      if (index !== cut && own[at++] !== bytes[index]) return false;
    }
    return true;
  }

  /** Where the token is, or would be put. */
  #slotOf(hash: number, bytes: Uint8Array, start: number, end: number): number {
    const slots = this.#slots;
    const mask = this.#mask;
    let slot = (hash ^ (hash >>> 15)) & mask;
    for (;;) {
      const id = slots[slot * 2 + 1]! - 1;
      if (id < 0 || (slots[slot * 2] === hash && this.#is(id, bytes, start, end))) return slot * 2;
      slot = (slot + 1) & mask;
    }
  }

  #is(id: number, bytes: Uint8Array, start: number, end: number): boolean {
    const own = this.#bytes;
    const { starts, gap } = this.#vocabulary;
    let at = starts[id]!;
    if (starts[id + 1]! - gap - at !== end - start) return false;
    for (let index = start; index < end; index++) {
      if (own[at++] !== bytes[index]) return false;
    }
    return true;
  }
}

/** FNV-1a, without the final mixing of high bits into low ones, which the caller does when it masks. */
function hashOf(bytes: Uint8Array, start: number, end: number): number {
  let hash = 0x811c9dc5 | 0;
  for (let index = start; index < end; index++) hash = Math.imul(hash ^ bytes[index]!, 0x01000193);
  return hash;
}

/** The length of the text's UTF-8, which `bytes` begin with then; where they are too few, any length that is more than theirs. */
function writeUtf8(text: string, bytes: Uint8Array): number {
  if (text.length > bytes.length) return text.length;
  let length = 0;
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index);
    // Rare, and a call into the runtime takes longer than a short text's other characters.
    if ((unit & 0xf800) === 0xd800) {
      const { read, written } = encoder.encodeInto(text, bytes);
      return read === text.length ? written : bytes.length + 1;
    }
    if (unit < 0x80) {
      bytes[length++] = unit;
      continue;
    }
    if (unit < 0x800) bytes[length++] = 0xc0 | (unit >> 6);
    else {
      bytes[length++] = 0xe0 | (unit >> 12);
      bytes[length++] = 0x80 | ((unit >> 6) & 0x3f);
    }
    bytes[length++] = 0x80 | (unit & 0x3f);
  }
  return length;
}
