import { type BlockId, type BlockPool, type ContentId, rootContent } from "./block-pool.js";
import { IntList } from "./int-list.js";
import { PrefixHeat } from "./prefix-heat.js";
import type { PromptImage } from "../scheduler/prompt-image.js";
import { hashLanes, PrefixHasher } from "@octavo/text/prefix-hash/prefix-hash";

/** See `PromptImage`. */
type HashedImage = Pick<PromptImage, "start" | "numTokens" | "digest">;

/**
 * The prefix hashes of one growing token list, computed on demand and kept: entry 0 is the hash of the salt, entry b + 1
 * that of block b.
 */
export class PrefixChain {
  readonly tokens: IntList;
  readonly #salt: string | undefined;
  readonly #images: readonly HashedImage[];
  #lanes = new Uint32Array(0);
  #numHashed = 0;

  constructor(tokens: IntList, salt: string | undefined, images: readonly HashedImage[] = []) {
    this.tokens = tokens;
    this.#salt = salt;
    this.#images = images;
  }

  /** The hash lanes up to `block`, which must be full; those of `block` are at `PrefixChain.offset(block)`. */
  through(block: number, blockSize: number, hasher: PrefixHasher): Uint32Array {
    const needed = (block + 2) * hashLanes;
    if (this.#lanes.length < needed) {
      const grown = new Uint32Array(Math.max(needed, this.#lanes.length * 2));
      grown.set(this.#lanes.length === 0 ? hasher.root(this.#salt) : this.#lanes);
      this.#lanes = grown;
    }
    for (; this.#numHashed <= block; this.#numHashed += 1) {
      const parent = this.#numHashed * hashLanes;
      const start = this.#numHashed * blockSize;
      const lanes = this.#lanes;
      const words = this.#wordsOf(start, start + blockSize);
      if (words === undefined)
        hasher.block(lanes, parent, this.tokens.values, start, blockSize, lanes, parent + hashLanes);
      else hasher.block(lanes, parent, words, 0, words.length, lanes, parent + hashLanes);
    }
    return this.#lanes;
  }

  /** Where images have tokens of the block: its tokens, and behind them where each of the images begins and its digest. */
  #wordsOf(start: number, end: number): Int32Array | undefined {
    const images = this.#images.filter((image) => image.start < end && start < image.start + image.numTokens);
    if (images.length === 0) return undefined;
    const own = this.tokens.values.subarray(start, end);
    return Int32Array.from([...own, ...images.flatMap((image) => [image.start, ...image.digest])]);
  }

  static offset(block: number): number {
    return (block + 1) * hashLanes;
  }
}

/** A prefix that is cached. */
export interface CachedPrefix {
  /** Blocks whose keys and values are cached. */
  readonly numMatched: number;
  /** Where states are cached too: that after the blocks that were found. */
  readonly state?: BlockId | undefined;
}

/**
 * Finds and registers full blocks by the prefix that ends with them: one cache for all requests, separated by salt. Recurrent states
 * are blocks of a pool of their own, each found by the same prefix as the block that it stands behind.
 */
export class PrefixCache {
  readonly #pool: BlockPool;
  readonly #states: BlockPool | undefined;
  readonly #hasher = new PrefixHasher();
  /** Of prefixes that requests found. */
  readonly heat = new PrefixHeat();

  constructor(pool: BlockPool, states?: BlockPool) {
    this.#pool = pool;
    this.#states = states;
  }

  /**
   * Appends to `found` the cached blocks of the longest prefix of `chain` within `maxTokens`; where there are states, of the longest
   * one whose state is cached too. Takes no references.
   */
  find(chain: PrefixChain, maxTokens: number, found: IntList): CachedPrefix {
    const before = found.length;
    this.#match(chain, maxTokens, found);
    const numMatched = found.length - before;
    if (this.#states === undefined) return { numMatched };
    for (let count = numMatched; count > 0; count -= 1) {
      const state = this.#stateAfter(chain, found, before, count - 1);
      if (state === undefined) continue;
      found.truncate(before + count);
      return { numMatched, state };
    }
    found.truncate(before);
    return { numMatched };
  }

  /** A request found the first `numTokens` of `chain`, full blocks of them, and is separated from others by `terms`. */
  noteFound(
    chain: PrefixChain,
    numTokens: number,
    terms: { readonly cacheScope: string | undefined; readonly cacheSalt: string | undefined },
  ): void {
    const { blockSize } = this.#pool;
    const block = Math.floor(numTokens / blockSize) - 1;
    if (block < 0) return;
    const offset = PrefixChain.offset(block);
    const lanes = chain.through(block, blockSize, this.#hasher).subarray(offset, offset + hashLanes);
    this.heat.note(lanes.join(), chain.tokens.values, (block + 1) * blockSize, terms);
  }

  #match(chain: PrefixChain, maxTokens: number, found: IntList): void {
    const { blockSize } = this.#pool;
    const maxBlocks = Math.floor(maxTokens / blockSize);
    let parent = rootContent;
    for (let block = 0; block < maxBlocks; block += 1) {
      const lanes = chain.through(block, blockSize, this.#hasher);
      const hit = this.#pool.lookup(
        parent,
        lanes,
        PrefixChain.offset(block),
        chain.tokens.values,
        block * blockSize,
      );
      if (hit === undefined) return;
      found.push(hit);
      parent = this.#pool.contentOf(hit) ?? rootContent;
    }
  }

  /**
   * Tokens of the full blocks behind the first `numCached` tokens, up to `maxTokens`, that were evicted and not cached again
   * since. Approximate, as `BlockPool.wasEvicted` is.
   */
  countEvicted(chain: PrefixChain, numCached: number, maxTokens: number): number {
    const { blockSize } = this.#pool;
    const maxBlocks = Math.floor(maxTokens / blockSize);
    let block = Math.floor(numCached / blockSize);
    const first = block;
    while (block < maxBlocks) {
      const lanes = chain.through(block, blockSize, this.#hasher);
      if (!this.#pool.wasEvicted(lanes, PrefixChain.offset(block))) break;
      block += 1;
    }
    return (block - first) * blockSize;
  }

  /** Evicts the cached blocks of the longest prefix of `chain` within `maxTokens`, last first. */
  evict(chain: PrefixChain, maxTokens: number): void {
    const found = new IntList();
    this.#match(chain, maxTokens, found);
    for (let index = found.length - 1; index >= 0; index -= 1) {
      const state = this.#stateAfter(chain, found, 0, index);
      if (state !== undefined) this.#states?.evict(state);
      this.#pool.evict(found.at(index) as BlockId);
    }
  }

  /** Takes the states behind a sequence's blocks out of the cache, because they may be wrong; before the blocks themselves. */
  forgetStates(chain: PrefixChain, blocks: IntList): void {
    for (let block = 0; block < blocks.length && (block + 1) * this.#pool.blockSize <= chain.tokens.length;) {
      const state = this.#stateAfter(chain, blocks, 0, block);
      // Another slot may hold the same.
      if (state === undefined) block += 1;
      else this.#states?.forget(state);
    }
  }

  /** Registers the state behind block number `block` of a sequence, if that block is registered. */
  registerState(chain: PrefixChain, blocks: IntList, block: number, slot: BlockId): void {
    const parent = this.#parentOf(blocks, 0, block);
    if (parent === undefined || this.#pool.contentOf(blocks.at(block) as BlockId) === undefined) return;
    this.#register(this.#states, slot, parent, chain, block);
  }

  /** The state behind block number `block` of the prefix that `blocks` hold from `first` on. */
  #stateAfter(chain: PrefixChain, blocks: IntList, first: number, block: number): BlockId | undefined {
    const parent = this.#parentOf(blocks, first, block);
    if (this.#states === undefined || parent === undefined) return undefined;
    const { blockSize } = this.#pool;
    const lanes = chain.through(block, blockSize, this.#hasher);
    const offset = PrefixChain.offset(block);
    return this.#states.lookup(parent, lanes, offset, chain.tokens.values, block * blockSize);
  }

  #parentOf(blocks: IntList, first: number, block: number): ContentId | undefined {
    return block === 0 ? rootContent : this.#pool.contentOf(blocks.at(first + block - 1) as BlockId);
  }

  /** How many of the blocks [from, to), which both chains have in full, belong to their common prefix. */
  countShared(a: PrefixChain, b: PrefixChain, from: number, to: number): number {
    // A hash covers everything before it, so hashes are equal up to some block and differ from there on.
    let shared = from;
    let end = Math.max(from, to);
    while (shared < end) {
      const middle = Math.floor((shared + end) / 2);
      if (this.#equal(a, b, middle)) shared = middle + 1;
      else end = middle;
    }
    return shared - from;
  }

  #equal(a: PrefixChain, b: PrefixChain, block: number): boolean {
    const { blockSize } = this.#pool;
    const left = a.through(block, blockSize, this.#hasher);
    const right = b.through(block, blockSize, this.#hasher);
    const offset = PrefixChain.offset(block);
    for (let lane = offset; lane < offset + hashLanes; lane += 1) {
      if (left[lane] !== right[lane]) return false;
    }
    return true;
  }

  /** Registers block number `block` of a sequence, if the blocks before it are registered. */
  register(chain: PrefixChain, blocks: IntList, block: number): void {
    const parent = this.#parentOf(blocks, 0, block);
    if (parent !== undefined) this.#register(this.#pool, blocks.at(block) as BlockId, parent, chain, block);
  }

  #register(
    pool: BlockPool | undefined,
    id: BlockId,
    parent: ContentId,
    chain: PrefixChain,
    block: number,
  ): void {
    const { blockSize } = this.#pool;
    const lanes = chain.through(block, blockSize, this.#hasher);
    pool?.register(id, parent, lanes, PrefixChain.offset(block), chain.tokens.values, block * blockSize);
  }
}
