import { type BlockId, type BlockPool, rootContent } from "./block-pool.js";
import { IntList } from "./int-list.js";
import { hashLanes, PrefixHasher } from "@octavo/text/prefix-hash/prefix-hash";

/**
 * The prefix hashes of one growing token list, computed on demand and kept: entry 0 is the hash of the salt, entry b + 1
 * that of block b.
 */
export class PrefixChain {
  readonly tokens: IntList;
  readonly #salt: string | undefined;
  #lanes = new Uint32Array(0);
  #numHashed = 0;

  constructor(tokens: IntList, salt: string | undefined) {
    this.tokens = tokens;
    this.#salt = salt;
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
      hasher.block(
        this.#lanes,
        parent,
        this.tokens.values,
        start,
        blockSize,
        this.#lanes,
        parent + hashLanes,
      );
    }
    return this.#lanes;
  }

  static offset(block: number): number {
    return (block + 1) * hashLanes;
  }
}

/** Finds and registers full blocks by the prefix that ends with them: one cache for all requests, separated by salt. */
export class PrefixCache {
  readonly #pool: BlockPool;
  readonly #hasher = new PrefixHasher();

  constructor(pool: BlockPool) {
    this.#pool = pool;
  }

  /** Appends to `found` the cached blocks of the longest prefix of `chain` within `maxTokens`. Takes no references. */
  find(chain: PrefixChain, maxTokens: number, found: IntList): void {
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
    this.find(chain, maxTokens, found);
    for (let index = found.length - 1; index >= 0; index -= 1) this.#pool.evict(found.at(index) as BlockId);
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
    const parent = block === 0 ? rootContent : this.#pool.contentOf(blocks.at(block - 1) as BlockId);
    if (parent === undefined) return;
    const { blockSize } = this.#pool;
    const lanes = chain.through(block, blockSize, this.#hasher);
    const id = blocks.at(block) as BlockId;
    this.#pool.register(id, parent, lanes, PrefixChain.offset(block), chain.tokens.values, block * blockSize);
  }
}
