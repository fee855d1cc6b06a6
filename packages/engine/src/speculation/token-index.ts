import type { IntList } from "../kv-cache/int-list.js";

const none = -1;
/** Stands between texts; equal to no token. */
const border = -1;
/** Positions are 32-bit; long before they run out everything is forgotten once. */
const lastPosition = 2 ** 31 - 2;

/**
 * Finds where the last tokens of a text have stood before. As in LZ77 compressors, places are chained by a hash of the
 * `contextLength` tokens before them, newest first; what a chain brings is compared with the tokens themselves. Keeps the
 * newest `capacity` tokens. Adding a token and taking a step along a chain take constant time and no memory.
 *
 * A place is the position of the token that followed there.
 */
export class TokenIndex {
  readonly #contextLength: number;
  readonly #capacity: number;
  /** Rings of a power of two: a position's token, and the next older place with the same hash. */
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

  /** The oldest position that is still known. */
  get start(): number {
    return this.#start;
  }

  add(token: number): void {
    if (this.#end - this.#start === this.#tokens.length) this.#makeRoom();
    // The token is what follows the context before it.
    const bucket = this.#bucketBefore(this.#end);
    const at = this.#end & (this.#tokens.length - 1);
    this.#tokens[at] = token;
    this.#older[at] = bucket === none ? none : this.#newest[bucket]!;
    if (bucket !== none) this.#newest[bucket] = this.#end;
    this.#end += 1;
    if (this.#end > lastPosition) this.clear();
  }

  /** No context reaches over it. */
  addBorder(): void {
    this.add(border);
  }

  clear(): void {
    this.#end = 0;
    this.#start = 0;
    this.#newest.fill(none);
  }

  /** Forgets everything before a position. */
  forgetBefore(position: number): void {
    this.#start = Math.min(Math.max(this.#start, position), this.#end);
  }

  /** The newest place before which stand the last tokens of `text`; undefined where there is none. */
  newestAfter(text: IntList): number | undefined {
    const { length, values } = text;
    if (length < this.#contextLength || this.#newest.length === 0) return undefined;
    let hash = 0;
    for (let index = length - this.#contextLength; index < length; index += 1)
      hash = mix(hash, values[index]!);
    return this.#known(this.#newest[hash & (this.#newest.length - 1)]!);
  }

  /** The next older place of the same chain; its context may differ, as hashes may collide. */
  olderThan(place: number): number | undefined {
    const older = this.#older[place & (this.#tokens.length - 1)]!;
    // Where the ring has gone round, the chain leads to something newer.
    return older < place ? this.#known(older) : undefined;
  }

  /** The token at a known position, undefined at borders and behind the end. */
  at(position: number): number | undefined {
    if (position < this.#start || position >= this.#end) return undefined;
    const token = this.#tokens[position & (this.#tokens.length - 1)]!;
    return token === border ? undefined : token;
  }

  /** How many tokens before `place` are the last ones of `text`, at most `most`. */
  matchLength(place: number, text: IntList, most: number): number {
    const { length, values } = text;
    const mask = this.#tokens.length - 1;
    const longest = Math.min(most, length, place - this.#start);
    let count = 0;
    while (count < longest && this.#tokens[(place - 1 - count) & mask] === values[length - 1 - count])
      count += 1;
    return count;
  }

  #known(place: number): number | undefined {
    return place >= this.#start && place !== none ? place : undefined;
  }

  /** Bucket of the context that ends before `position`; none where there is no such context. */
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

  /** Doubles the rings, or forgets the oldest token when they are as large as they may be. */
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
