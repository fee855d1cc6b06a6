import type { IntList } from "../kv-cache/int-list.js";

const none = -1;
/** Separates texts; equal to no token. */
const border = -1;
/** Positions are 32-bit; the index is cleared before they run out. */
const lastPosition = 2 ** 31 - 2;

/**
 * Finds earlier occurrences of a text's last tokens. As in LZ77 compressors, positions are chained by a hash of the
 * `contextLength` tokens before them, newest first; candidates are then compared token by token. Keeps the newest
 * `capacity` tokens. Adding a token and taking a step along a chain take constant time and allocate nothing.
 *
 * An occurrence is given as the position of the token that followed it.
 */
export class TokenIndex {
  readonly #contextLength: number;
  readonly #capacity: number;
  /** Rings of a power of two: a position's token, and the next older occurrence with the same hash. */
  #tokens = new Int32Array(0);
  #older = new Int32Array(0);
  #newest = new Int32Array(0);
  #end = 0;
  #start = 0;

  constructor(contextLength: number, capacity: number) {
    this.#contextLength = contextLength;
    this.#capacity = 2 ** Math.ceil(Math.log2(Math.max(64, capacity)));
  }

  /** Position behind the newest token. */
  get end(): number {
    return this.#end;
  }

  /** The oldest position that is kept. */
  get start(): number {
    return this.#start;
  }

  add(token: number): void {
    if (this.#end - this.#start === this.#tokens.length) this.#makeRoom();
    // The token follows the context before it.
    const bucket = this.#bucketBefore(this.#end);
    const at = this.#end & (this.#tokens.length - 1);
    this.#tokens[at] = token;
    this.#older[at] = bucket === none ? none : this.#newest[bucket]!;
    if (bucket !== none) this.#newest[bucket] = this.#end;
    this.#end += 1;
    if (this.#end > lastPosition) this.clear();
  }

  /** Ends a text: no context reaches across. */
  addBorder(): void {
    this.add(border);
  }

  clear(): void {
    this.#end = 0;
    this.#start = 0;
    this.#newest.fill(none);
  }

  /** Drops everything before a position. */
  forgetBefore(position: number): void {
    this.#start = Math.min(Math.max(this.#start, position), this.#end);
  }

  /** The newest occurrence of the last `contextLength` tokens of `text`, unless hashes collide; undefined if there is none. */
  newestAfter(text: IntList): number | undefined {
    const { length, values } = text;
    if (length < this.#contextLength || this.#newest.length === 0) return undefined;
    let hash = 0;
    for (let index = length - this.#contextLength; index < length; index += 1)
      hash = mix(hash, values[index]!);
    return this.#known(this.#newest[hash & (this.#newest.length - 1)]!);
  }

  /** The next older entry of the chain; its context may differ, as hashes may collide. */
  olderThan(occurrence: number): number | undefined {
    const older = this.#older[occurrence & (this.#tokens.length - 1)]!;
    // Where the ring has wrapped, the link leads to a newer position.
    return older < occurrence ? this.#known(older) : undefined;
  }

  /** The token at a position; undefined at borders and at positions that are not kept. */
  at(position: number): number | undefined {
    if (position < this.#start || position >= this.#end) return undefined;
    const token = this.#tokens[position & (this.#tokens.length - 1)]!;
    return token === border ? undefined : token;
  }

  /** Tokens of the suffix of `text` that precede `occurrence`, at most `maxLength`. */
  matchLength(occurrence: number, text: IntList, maxLength: number): number {
    const { length, values } = text;
    const mask = this.#tokens.length - 1;
    const longest = Math.min(maxLength, length, occurrence - this.#start);
    let count = 0;
    while (count < longest && this.#tokens[(occurrence - 1 - count) & mask] === values[length - 1 - count])
      count += 1;
    return count;
  }

  #known(occurrence: number): number | undefined {
    return occurrence >= this.#start && occurrence !== none ? occurrence : undefined;
  }

  /** Bucket of the context that ends before `position`; none if no full context does. */
  #bucketBefore(position: number): number {
    if (position - this.#start < this.#contextLength) return none;
    const mask = this.#tokens.length - 1;
    let hash = 0;
    for (let index = position - this.#contextLength; index < position; index += 1) {
      const token = this.#tokens[index & mask]!;
      if (token === border) return none;
      hash = mix(hash, token);
    }
    return hash & (this.#newest.length - 1);
  }

  /** Doubles the rings, or drops the oldest token at full capacity. */
  #makeRoom(): void {
    const { length } = this.#tokens;
    if (length >= this.#capacity) {
      this.#start += 1;
      return;
    }
    const tokens = this.#tokens;
    const [start, end] = [this.#start, this.#end];
    const size = Math.max(64, length * 2);
    this.#tokens = new Int32Array(size);
    this.#older = new Int32Array(size);
    this.#newest = new Int32Array(size).fill(none);
    this.#end = start;
    for (let position = start; position < end; position += 1) this.add(tokens[position & (length - 1)]!);
  }
}

/** Multiplicative hashing, with the high bits brought down for the mask. */
function mix(hash: number, token: number): number {
  const mixed = Math.imul(hash ^ token, 0x9e3779b1);
  return mixed ^ (mixed >>> 15);
}
