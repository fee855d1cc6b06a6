import { OctavoError } from "@octavo/protocol/errors";
import type { BlockId, BlockPool } from "../kv-cache/block-pool.js";
import type { CachedPrefix, PrefixCache } from "../kv-cache/prefix-cache.js";
import type { IntList } from "../kv-cache/int-list.js";
import type { SequenceStates } from "./sequence-states.js";
import type { Sequence } from "./sequence.js";

/** Allocates, shares and releases the blocks of sequences, and counts what each allocated and evicted. */
export class SequenceBlocks {
  readonly #pool: BlockPool;
  readonly #prefixCache: PrefixCache | undefined;
  readonly #states: SequenceStates | undefined;

  constructor(pool: BlockPool, prefixCache: PrefixCache | undefined, states?: SequenceStates) {
    this.#pool = pool;
    this.#prefixCache = prefixCache;
    this.#states = states;
  }

  /** Allocates the blocks for `numTokens` positions, all or none. */
  grow(sequence: Sequence, numTokens: number): boolean {
    const missing = this.#pool.blocksFor(numTokens) - sequence.blocks.length;
    if (missing > this.#pool.numAvailable) return false;
    const evictionsBefore = this.#pool.numEvictions;
    for (let count = 0; count < missing; count += 1) {
      const block = this.#pool.allocate();
      if (block === undefined)
        throw new OctavoError("internal_error", "block pool: fewer blocks than counted");
      sequence.blocks.push(block);
    }
    if (missing > 0) {
      sequence.numBlocksAllocated += missing;
      sequence.numBlocksEvicted += this.#pool.numEvictions - evictionsBefore;
    }
    return true;
  }

  /** Gives a sequence without blocks cached ones, which count as computed, and a slot of state where the model keeps any. */
  share(sequence: Sequence, hits: IntList, cached: CachedPrefix): void {
    for (let index = 0; index < hits.length; index += 1) {
      const block = hits.at(index) as BlockId;
      this.#pool.retain(block);
      sequence.blocks.push(block);
    }
    sequence.numComputed = hits.length * this.#pool.blockSize;
    sequence.numRegistered = hits.length;
    this.#states?.begin(sequence, cached, sequence.numComputed);
  }

  /** Registers the blocks that a sequence has filled in the prefix cache. */
  offer(sequence: Sequence): void {
    if (this.#prefixCache === undefined) return;
    while ((sequence.numRegistered + 1) * this.#pool.blockSize <= sequence.numComputed) {
      this.#prefixCache.register(sequence.prefix, sequence.blocks, sequence.numRegistered);
      sequence.numRegistered += 1;
    }
  }

  /** Releases the blocks behind the computed tokens. */
  trim(sequence: Sequence): void {
    const { blocks } = sequence;
    const needed = this.#pool.blocksFor(sequence.numComputed);
    for (let index = blocks.length - 1; index >= needed; index -= 1)
      this.#pool.release(blocks.at(index) as BlockId);
    sequence.numBlocksAllocated -= blocks.length - needed;
    blocks.truncate(needed);
  }

  /** Records that the scheduled tokens of a sequence were computed, and offers what it filled to the prefix cache. */
  commit(sequence: Sequence): void {
    sequence.numComputed += sequence.numScheduled;
    sequence.numScheduled = 0;
    this.offer(sequence);
    this.#states?.commit(sequence, this.#prefixCache);
  }

  /** Takes a sequence's blocks and states out of the prefix cache. */
  forget({ blocks, prefix }: Sequence): void {
    if (this.#states !== undefined) this.#prefixCache?.forgetStates(prefix, blocks);
    for (let index = 0; index < blocks.length; index += 1) this.#pool.forget(blocks.at(index) as BlockId);
  }

  /** Releases all blocks, last first, so that a cached prefix outlives what follows it. */
  release(sequence: Sequence): void {
    const { blocks } = sequence;
    for (let index = blocks.length - 1; index >= 0; index -= 1)
      this.#pool.release(blocks.at(index) as BlockId);
    blocks.truncate(0);
    this.#states?.release(sequence);
    sequence.draft.truncate(0);
    sequence.numComputed = 0;
    sequence.numRegistered = 0;
  }

  /** Blocks that preempting a running sequence frees: those it shares with no other, and those its input still needs. */
  freedBy({ blocks, numTokens }: Sequence): number {
    let freed = this.#pool.blocksFor(numTokens) - blocks.length;
    for (let index = 0; index < blocks.length; index += 1) {
      if (this.#pool.referenceCount(blocks.at(index) as BlockId) === 1) freed += 1;
    }
    return freed;
  }

  /**
   * Blocks that must become free before a waiting sequence can start with the cached blocks `hits`; 0 or less if it can start.
   * While others run, a hundredth of the pool stays free for them to grow into: a sequence admitted into the last block would be
   * preempted with its prompt just computed.
   */
  missingFor(sequence: Sequence, hits: IntList, running: readonly Sequence[]): number {
    let available = this.#pool.numAvailable;
    for (let index = 0; index < hits.length; index += 1) {
      if (this.#pool.referenceCount(hits.at(index) as BlockId) === 0) available -= 1;
    }
    for (const other of running) available -= this.#pool.blocksFor(other.numTokens) - other.blocks.length;
    if (running.length > 0) available -= Math.ceil(this.#pool.numBlocks / 100);
    return this.#pool.blocksFor(sequence.numTokens) - hits.length - available;
  }
}
