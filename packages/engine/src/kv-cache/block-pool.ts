import { OctavoError } from "@octavo/protocol/errors";
import { hashLanes } from "@octavo/text/prefix-hash/prefix-hash";

declare const blockIdBrand: unique symbol;
/** Index of a block in the pool and in the KV cache's memory. */
export type BlockId = number & { readonly [blockIdBrand]: true };

/** Names a distinct prefix that ends with a full block; `rootContent` is the empty prefix. */
export type ContentId = number;
export const rootContent: ContentId = 0;

/**
 * The KV cache's blocks, as struct of arrays. Every block is in one of three states: free (no reference, no content), cached
 * (no reference, content found by prefix) or used (referenced by block tables).
 *
 * Free and cached blocks form one intrusive doubly linked list: free ones at the front, cached ones behind them in the
 * order of their release. Taking from the front thus uses free blocks first and then evicts the least recently used
 * (vLLM V1's order). Blocks are evicted on allocation and not before.
 *
 * A full block is found by its prefix hash. A hit also requires equal tokens and an equal content id of the parent; content
 * ids name each distinct prefix once, so a hash collision causes a miss and never a wrong hit.
 */
export class BlockPool {
  readonly numBlocks: number;
  readonly blockSize: number;
  readonly #referenceCounts: Int32Array;
  /** List links; entry `numBlocks` is the list's sentinel. A used block links to itself. */
  readonly #next: Int32Array;
  readonly #previous: Int32Array;
  /** Content ids; 0 for blocks without content. */
  readonly #contents: Float64Array;
  readonly #parents: Float64Array;
  readonly #hashes: Uint32Array;
  readonly #tokens: Int32Array;
  /** Chains of hashed blocks by the hash's first lane; -1 ends a chain. */
  readonly #buckets: Int32Array;
  readonly #bucketNext: Int32Array;
  readonly #sentinel: number;
  /** A lossy table of evicted hashes: the second lane, at an index given by the first; later ones overwrite. */
  readonly #evicted: Uint32Array;
  #numFree: number;
  #numCached = 0;
  #numEvictions = 0;
  #lastContent: ContentId = rootContent;

  constructor(numBlocks: number, blockSize: number) {
    if (!Number.isSafeInteger(numBlocks) || numBlocks < 1 || numBlocks >= 2 ** 30) {
      throw new OctavoError(
        "invalid_option",
        `the number of KV cache blocks must be a positive integer, not ${numBlocks}`,
      );
    }
    if (!Number.isSafeInteger(blockSize) || blockSize < 1 || blockSize > 256) {
      throw new OctavoError(
        "invalid_option",
        `block size must be an integer from 1 to 256, not ${blockSize}`,
        {
          param: "block_size",
        },
      );
    }
    this.numBlocks = numBlocks;
    this.blockSize = blockSize;
    this.#referenceCounts = new Int32Array(numBlocks);
    this.#next = new Int32Array(numBlocks + 1);
    this.#previous = new Int32Array(numBlocks + 1);
    this.#contents = new Float64Array(numBlocks);
    this.#parents = new Float64Array(numBlocks);
    this.#hashes = new Uint32Array(numBlocks * hashLanes);
    this.#tokens = new Int32Array(numBlocks * blockSize);
    this.#buckets = new Int32Array(2 ** Math.ceil(Math.log2(numBlocks * 2))).fill(-1);
    this.#bucketNext = new Int32Array(numBlocks).fill(-1);
    this.#evicted = new Uint32Array(Math.max(65_536, this.#buckets.length * 4));
    this.#sentinel = numBlocks;
    this.#numFree = numBlocks;
    for (let block = 0; block <= numBlocks; block += 1) {
      this.#next[block] = block === numBlocks ? 0 : block + 1;
      this.#previous[block] = block === 0 ? numBlocks : block - 1;
    }
  }

  get numFree(): number {
    return this.#numFree;
  }

  get numCached(): number {
    return this.#numCached;
  }

  /** Blocks that can be allocated: free ones and evictable ones. */
  get numAvailable(): number {
    return this.#numFree + this.#numCached;
  }

  get numUsed(): number {
    return this.numBlocks - this.numAvailable;
  }

  /** Evictions since the pool was created, forced ones included. */
  get numEvictions(): number {
    return this.#numEvictions;
  }

  /** Blocks needed for `numTokens` positions: the one formula for sizing, admission and growth. */
  blocksFor(numTokens: number): number {
    return Math.ceil(numTokens / this.blockSize);
  }

  referenceCount(block: BlockId): number {
    return this.#referenceCounts[block] ?? 0;
  }

  /** The content id of a block; undefined if it is not in the prefix cache. */
  contentOf(block: BlockId): ContentId | undefined {
    return this.#contents[block] || undefined;
  }

  /** Allocates a block with one reference, evicting if necessary; undefined if every block is used. */
  allocate(): BlockId | undefined {
    if (this.numAvailable === 0) return undefined;
    const block = this.#next[this.#sentinel] as BlockId;
    if (this.#contents[block] === 0) this.#numFree -= 1;
    else {
      this.#noteEviction(block);
      this.#unhash(block);
      this.#numCached -= 1;
    }
    this.#unlink(block);
    this.#referenceCounts[block] = 1;
    return block;
  }

  /** Adds a reference to a used or cached block. */
  retain(block: BlockId): void {
    const count = this.referenceCount(block);
    if (count === 0) {
      if (this.#contents[block] === 0)
        throw new OctavoError("internal_error", `free block ${block} retained`);
      this.#unlink(block);
      this.#numCached -= 1;
    }
    this.#referenceCounts[block] = count + 1;
  }

  /**
   * Drops a reference. Release a sequence's blocks last first, so that a prefix outlives what follows it. Of two unreferenced
   * blocks with the same content, the older is freed: content is cached once.
   */
  release(block: BlockId): void {
    const count = this.referenceCount(block);
    if (count < 1)
      throw new OctavoError("internal_error", `block ${block} released more often than retained`);
    this.#referenceCounts[block] = count - 1;
    if (count > 1) return;
    const twin = this.#contents[block] === 0 ? undefined : this.#twinOf(block);
    if (twin !== undefined) {
      const loser = this.referenceCount(twin) === 0 ? twin : block;
      this.#unhash(loser);
      if (loser === twin) {
        this.#unlink(twin);
        this.#numCached -= 1;
        this.#linkFront(twin);
      }
    }
    if (this.#contents[block] === 0) this.#linkFront(block);
    else this.#linkBack(block);
  }

  /** Finds the block that holds `tokens[start, start + blockSize)` after `parent`; takes no reference. */
  lookup(
    parent: ContentId,
    hash: Uint32Array,
    hashOffset: number,
    tokens: Int32Array,
    start: number,
  ): BlockId | undefined {
    let block = this.#buckets[(hash[hashOffset] ?? 0) & (this.#buckets.length - 1)] ?? -1;
    while (block !== -1) {
      if (this.#holds(block, parent, hash, hashOffset, tokens, start)) return block as BlockId;
      block = this.#bucketNext[block] ?? -1;
    }
    return undefined;
  }

  /**
   * Whether a block with this hash was evicted recently. The table is bounded: it forgets, and has a false positive rate of about
   * 2^-32. For evidence only.
   */
  wasEvicted(hash: Uint32Array, hashOffset: number): boolean {
    return this.#evicted[(hash[hashOffset] ?? 0) & (this.#evicted.length - 1)] === hash[hashOffset + 1];
  }

  /** Adds a used, full block to the prefix cache. Blocks with equal content may coexist; they share a content id. */
  register(
    block: BlockId,
    parent: ContentId,
    hash: Uint32Array,
    hashOffset: number,
    tokens: Int32Array,
    start: number,
  ): void {
    if (this.#contents[block] !== 0) return;
    if (this.referenceCount(block) === 0)
      throw new OctavoError("internal_error", `unused block ${block} registered`);
    const twin = this.lookup(parent, hash, hashOffset, tokens, start);
    this.#contents[block] = twin === undefined ? (this.#lastContent += 1) : (this.#contents[twin] ?? 0);
    this.#parents[block] = parent;
    for (let lane = 0; lane < hashLanes; lane += 1) {
      this.#hashes[block * hashLanes + lane] = hash[hashOffset + lane] ?? 0;
    }
    this.#tokens.set(tokens.subarray(start, start + this.blockSize), block * this.blockSize);
    const bucket = this.#bucketOf(block);
    this.#bucketNext[block] = this.#buckets[bucket] ?? -1;
    this.#buckets[bucket] = block;
  }

  /** Removes a block from the prefix cache, because its content may be wrong; references stay. */
  forget(block: BlockId): void {
    if (this.#contents[block] === 0) return;
    this.#unhash(block);
    if (this.referenceCount(block) === 0) {
      this.#unlink(block);
      this.#numCached -= 1;
      this.#linkFront(block);
    }
  }

  /**
   * Evicts the content of a block, also from other blocks that hold the same; references stay. Returns the number of blocks.
   */
  evict(block: BlockId): number {
    let count = 0;
    for (
      let next: BlockId | undefined = block;
      next !== undefined && this.#contents[next] !== 0;
      count += 1
    ) {
      const twin = this.#twinOf(next);
      this.#noteEviction(next);
      this.forget(next);
      next = twin;
    }
    return count;
  }

  /** Evicts all cached blocks; returns how many there were. */
  evictCached(): number {
    const before = this.#numCached;
    for (let block = 0; block < this.numBlocks; block += 1) {
      if (this.#contents[block] === 0 || this.#referenceCounts[block] !== 0) continue;
      this.#noteEviction(block);
      this.forget(block as BlockId);
    }
    return before;
  }

  /** Empties the prefix cache. Returns false, and does nothing, while any block is used. */
  reset(): boolean {
    if (this.numUsed > 0) return false;
    for (let block = 0; block < this.numBlocks; block += 1) this.forget(block as BlockId);
    return true;
  }

  /**
   * Checks the pool against the block tables that should hold its references. Throws `internal_error` naming the
   * first thing that is wrong. O(blocks).
   */
  checkIntegrity(blockTables: Iterable<ArrayLike<number>>): void {
    const fail = (problem: string): never => {
      throw new OctavoError("internal_error", `block pool: ${problem}`);
    };
    const expected = new Int32Array(this.numBlocks);
    for (const table of blockTables) {
      const seen = new Set<number>();
      for (let index = 0; index < table.length; index += 1) {
        const block = table[index] ?? -1;
        if (block < 0 || block >= this.numBlocks) fail(`block ${block} of a block table does not exist`);
        if (seen.has(block)) fail(`block ${block} occurs twice in one block table`);
        seen.add(block);
        expected[block] = (expected[block] ?? 0) + 1;
      }
    }
    let hashed = 0;
    for (let block = 0; block < this.numBlocks; block += 1) {
      const count = this.#referenceCounts[block];
      if (count !== expected[block])
        fail(`block ${block} counts ${count} references but has ${expected[block]}`);
      const linked = this.#next[block] !== block;
      if (linked !== (count === 0))
        fail(`block ${block} with ${count} references is ${linked ? "" : "not "}in the free list`);
      if (this.#contents[block] !== 0) hashed += 1;
    }
    let free = 0;
    let cached = 0;
    let before = this.#sentinel;
    for (let block = this.#next[before] ?? -1; block !== this.#sentinel; block = this.#next[block] ?? -1) {
      if (this.#previous[block] !== before) fail(`the links around block ${block} disagree`);
      if (this.#contents[block] === 0) free += 1;
      else cached += 1;
      if (this.#contents[block] === 0 && cached > 0) fail(`free block ${block} is behind cached ones`);
      if (free + cached > this.numBlocks) fail("the free list has a cycle");
      before = block;
    }
    if (this.#previous[this.#sentinel] !== before) fail("the free list's tail is wrong");
    if (free !== this.#numFree || cached !== this.#numCached) {
      fail(
        `the list has ${free} free and ${cached} cached blocks, the counters say ${this.#numFree} and ${this.#numCached}`,
      );
    }
    let chained = 0;
    for (let bucket = 0; bucket < this.#buckets.length; bucket += 1) {
      for (let block = this.#buckets[bucket] ?? -1; block !== -1; block = this.#bucketNext[block] ?? -1) {
        if (this.#contents[block] === 0 || this.#bucketOf(block) !== bucket)
          fail(`block ${block} is in the wrong bucket`);
        if ((chained += 1) > hashed) fail("the hash table holds more blocks than are hashed");
      }
    }
    if (chained !== hashed) fail(`${hashed} blocks are hashed but ${chained} are in the hash table`);
  }

  #bucketOf(block: number): number {
    return (this.#hashes[block * hashLanes] ?? 0) & (this.#buckets.length - 1);
  }

  #holds(
    block: number,
    parent: ContentId,
    hash: Uint32Array,
    hashOffset: number,
    tokens: Int32Array,
    start: number,
  ): boolean {
    if (this.#parents[block] !== parent) return false;
    for (let lane = 0; lane < hashLanes; lane += 1) {
      if (this.#hashes[block * hashLanes + lane] !== hash[hashOffset + lane]) return false;
    }
    const first = block * this.blockSize;
    for (let index = 0; index < this.blockSize; index += 1) {
      if (this.#tokens[first + index] !== tokens[start + index]) return false;
    }
    return true;
  }

  #twinOf(block: number): BlockId | undefined {
    const content = this.#contents[block];
    let other = this.#buckets[this.#bucketOf(block)] ?? -1;
    while (other !== -1) {
      if (other !== block && this.#contents[other] === content) return other as BlockId;
      other = this.#bucketNext[other] ?? -1;
    }
    return undefined;
  }

  #noteEviction(block: number): void {
    const lane = block * hashLanes;
    this.#evicted[this.#hashes[lane]! & (this.#evicted.length - 1)] = this.#hashes[lane + 1]!;
    this.#numEvictions += 1;
  }

  #unhash(block: number): void {
    const bucket = this.#bucketOf(block);
    let before = -1;
    for (let at = this.#buckets[bucket] ?? -1; at !== block; at = this.#bucketNext[at] ?? -1) before = at;
    const after = this.#bucketNext[block] ?? -1;
    if (before === -1) this.#buckets[bucket] = after;
    else this.#bucketNext[before] = after;
    this.#bucketNext[block] = -1;
    this.#contents[block] = 0;
  }

  #unlink(block: number): void {
    const next = this.#next[block] ?? 0;
    const previous = this.#previous[block] ?? 0;
    this.#next[previous] = next;
    this.#previous[next] = previous;
    this.#next[block] = block;
    this.#previous[block] = block;
  }

  #linkFront(block: number): void {
    this.#numFree += 1;
    this.#link(this.#sentinel, block, this.#next[this.#sentinel] ?? 0);
  }

  #linkBack(block: number): void {
    this.#numCached += 1;
    this.#link(this.#previous[this.#sentinel] ?? 0, block, this.#sentinel);
  }

  #link(previous: number, block: number, next: number): void {
    this.#next[previous] = block;
    this.#previous[block] = previous;
    this.#next[block] = next;
    this.#previous[next] = block;
  }
}
