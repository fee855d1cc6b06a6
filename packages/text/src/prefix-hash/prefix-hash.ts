import { randomFillSync } from "node:crypto";
import { OctavoError } from "@octavo/protocol/errors";

/** Lanes (u32) of one prefix hash. */
export const hashLanes = 4;

/**
 * Chained keyed hash of prefixes, 128 bits: a block's hash covers its tokens and its parent's hash, and the first
 * parent covers the salt. Two HalfSipHash-2-4 runs (Aumasson and Bernstein's 32-bit SipHash, 64-bit output) under
 * independent keys: `key`, four words, or random ones, so that nobody outside can aim at a bucket.
 */
export class PrefixHasher {
  readonly #keys: Uint32Array;
  readonly #word = new Int32Array(1);

  /** Throws `invalid_option` for a key that is not four words. */
  constructor(key: Uint32Array = randomFillSync(new Uint32Array(hashLanes))) {
    if (key.length !== hashLanes)
      throw new OctavoError(
        "invalid_option",
        `A prefix hash's key has ${hashLanes} words, not ${key.length}.`,
      );
    this.#keys = key;
  }

  /** Hash of what precedes the first block. */
  root(salt: string | undefined): Uint32Array {
    let lanes: Uint32Array = new Uint32Array(hashLanes);
    if (salt === undefined) return lanes;
    const units = new Int32Array(salt.length);
    for (let index = 0; index < salt.length; index += 1) units[index] = salt.charCodeAt(index);
    const root = new Uint32Array(hashLanes);
    this.#word[0] = -1;
    this.block(lanes, 0, this.#word, 0, 1, root, 0);
    lanes = root.slice();
    this.block(lanes, 0, units, 0, units.length, root, 0);
    return root;
  }

  /** Writes the hash of `tokens[start, start + count)` under the parent's lanes to `out` at `outOffset`. */
  block(
    parent: Uint32Array,
    parentOffset: number,
    tokens: Int32Array,
    start: number,
    count: number,
    out: Uint32Array,
    outOffset: number,
  ): void {
    const [a = 0, b = 0, c = 0, d = 0] = this.#keys;
    halfSipHash(a, b, parent, parentOffset, tokens, start, count, out, outOffset);
    halfSipHash(c, d, parent, parentOffset, tokens, start, count, out, outOffset + 2);
  }
}

interface PrefixBlockOptions {
  /** Tokens per block; hashes are comparable only for the same block size. */
  readonly blockSize: number;
  /** Keeps prefixes apart that must not be shared, such as those of two tenants (`cache_salt`). */
  readonly salt?: string | undefined;
  /** 128 bits; hashes made under one key can be compared, in whichever process they were made. */
  readonly key: Uint32Array;
}

/**
 * The hash of every full block that begins a prompt, 32 hexadecimal digits each: entry b is equal for two prompts exactly
 * when their first `(b + 1) * blockSize` tokens and their salts are (up to collisions of 128 bits). Tokens behind the last
 * full block are left out. Throws `invalid_option` for a block size that is not a positive integer, or a malformed key.
 */
export function prefixBlockHashes(
  tokens: ArrayLike<number>,
  { blockSize, salt, key }: PrefixBlockOptions,
): string[] {
  if (!Number.isSafeInteger(blockSize) || blockSize < 1)
    throw new OctavoError("invalid_option", `The block size must be a positive integer, not ${blockSize}.`);
  const hasher = new PrefixHasher(key);
  const ids = Int32Array.from(tokens);
  let parent = hasher.root(salt);
  return Array.from({ length: Math.floor(ids.length / blockSize) }, (_, block) => {
    const hash = new Uint32Array(hashLanes);
    hasher.block(parent, 0, ids, block * blockSize, blockSize, hash, 0);
    parent = hash;
    return Array.from(hash, (lane) => lane.toString(16).padStart(8, "0")).join("");
  });
}

function halfSipHash(
  key0: number,
  key1: number,
  parent: Uint32Array,
  parentOffset: number,
  tokens: Int32Array,
  start: number,
  count: number,
  out: Uint32Array,
  outOffset: number,
): void {
  let v0 = key0 | 0;
  let v1 = key1 ^ 0xee;
  let v2 = 0x6c796765 ^ key0;
  let v3 = 0x74656462 ^ key1;
  const words = hashLanes + count;
  // Word `words` carries the length; the two phases after it finalise, each giving 32 bits.
  for (let index = 0; index <= words + 2; index += 1) {
    let word = 0;
    let rounds = 4;
    if (index < hashLanes) word = parent[parentOffset + index] ?? 0;
    else if (index < words) word = tokens[start + index - hashLanes] ?? 0;
    else if (index === words) word = words << 24;
    if (index <= words) {
      v3 ^= word;
      rounds = 2;
    } else if (index === words + 1) v2 ^= 0xee;
    else v1 ^= 0xdd;
    for (; rounds > 0; rounds -= 1) {
      v0 = (v0 + v1) | 0;
      v1 = (v1 << 5) | (v1 >>> 27);
      v1 ^= v0;
      v0 = (v0 << 16) | (v0 >>> 16);
      v2 = (v2 + v3) | 0;
      v3 = (v3 << 8) | (v3 >>> 24);
      v3 ^= v2;
      v0 = (v0 + v3) | 0;
      v3 = (v3 << 7) | (v3 >>> 25);
      v3 ^= v0;
      v2 = (v2 + v1) | 0;
      v1 = (v1 << 13) | (v1 >>> 19);
      v1 ^= v2;
      v2 = (v2 << 16) | (v2 >>> 16);
    }
    if (index <= words) v0 ^= word;
    else out[outOffset + index - words - 1] = v1 ^ v3;
  }
}
