import { OctavoError } from "@octavo/protocol/errors";
import type { BlockId, BlockPool } from "../kv-cache/block-pool.js";
import type { CachedPrefix, PrefixCache } from "../kv-cache/prefix-cache.js";
import type { Sequence } from "./sequence.js";

/** Most snapshots of one sequence, as a share of the slots: longer ones keep them further apart. */
const mostOfSlots = 1 / 4;

/**
 * Slots of recurrent state of sequences. A state cannot be shared or cut back as blocks can, so copies are kept where a later
 * request may go on: after every `interval` tokens, at the last block border of the prompt, and where cached blocks of another
 * request's prefix ended. Each is found by the prefix that ends there, and evicted when it was used least recently.
 */
export class SequenceStates {
  readonly #pool: BlockPool;
  readonly #blockSize: number;
  readonly #interval: number;

  /** @param interval tokens, rounded up to whole blocks of `blockSize` */
  constructor(pool: BlockPool, blockSize: number, interval: number) {
    this.#pool = pool;
    this.#blockSize = blockSize;
    this.#interval = Math.ceil(interval / blockSize) * blockSize;
  }

  get pool(): BlockPool {
    return this.#pool;
  }

  /** Whether a sequence can start from a hit now: there is a slot beside the hit's, or the hit's own can be had. */
  hasSlotFor({ state }: CachedPrefix): boolean {
    return this.#pool.numAvailable > 0 || (state !== undefined && this.#pool.referenceCount(state) === 0);
  }

  /** Gives a sequence a slot; it starts with `numTokens` tokens computed. */
  begin(sequence: Sequence, { state, numMatched }: CachedPrefix, numTokens: number): void {
    if (state !== undefined) this.#pool.retain(state);
    let slot = this.#pool.allocate();
    if (slot === undefined && state !== undefined && this.#pool.referenceCount(state) === 1) {
      // The last slot is the snapshot itself.
      this.#pool.forget(state);
      slot = state;
    }
    if (slot === undefined) throw new OctavoError("internal_error", "state pool: fewer slots than counted");
    const junction = numMatched * this.#blockSize;
    sequence.state = { slot, source: state, start: numTokens, snapshots: [], junction };
  }

  /** Reserves slots for what the step that is planned should keep of a sequence, as far as there are any. */
  reserveSnapshots(sequence: Sequence): void {
    const { state } = sequence;
    if (state === undefined) return;
    const end = sequence.numComputed + sequence.numScheduled;
    const snapshots: { position: number; slot: BlockId }[] = [];
    for (const position of this.#borders(sequence, state.start, end)) {
      const slot = this.#pool.allocate();
      if (slot === undefined) break;
      snapshots.push({ position, slot });
    }
    state.snapshots = snapshots;
  }

  /** The last position up to `numTokens` after which a sequence's state is kept, or was. */
  lastBorder(sequence: Sequence, numTokens: number): number {
    return this.#borders(sequence, 0, numTokens).at(-1) ?? 0;
  }

  /** After `Sequence.numComputed` moved to the end of the step's tokens, and the blocks up to there were offered to the cache. */
  commit(sequence: Sequence, cache: PrefixCache | undefined): void {
    const { state } = sequence;
    if (state === undefined) return;
    if (state.source !== undefined && state.source !== state.slot) this.#pool.release(state.source);
    state.source = state.slot;
    state.start = sequence.numComputed;
    for (const { position, slot } of state.snapshots) {
      cache?.registerState(sequence.prefix, sequence.blocks, position / this.#blockSize - 1, slot);
      this.#pool.release(slot);
    }
    state.snapshots = [];
  }

  release(sequence: Sequence): void {
    const { state } = sequence;
    if (state === undefined) return;
    for (const { slot } of state.snapshots) this.#pool.release(slot);
    if (state.source !== undefined && state.source !== state.slot) this.#pool.release(state.source);
    this.#pool.release(state.slot);
    sequence.state = undefined;
  }

  /** Throws `internal_error` unless every slot is free, cached or held by a running sequence. */
  checkIntegrity(running: readonly Sequence[]): void {
    const held = running.map(({ state, numComputed, group }) => {
      if (state === undefined || state.start > numComputed)
        throw new OctavoError(
          "internal_error",
          `scheduler: a sequence of ${group.requestId} has a wrong state`,
        );
      const { slot, source, snapshots } = state;
      const others = snapshots.map((snapshot) => snapshot.slot);
      return source === undefined || source === slot ? [slot, ...others] : [slot, source, ...others];
    });
    this.#pool.checkIntegrity(held);
  }

  /** Positions in (from, to] worth keeping, ascending. */
  #borders({ numPromptTokens, numTokens, state }: Sequence, from: number, to: number): number[] {
    let interval = this.#interval;
    while (numTokens / interval > this.#pool.numBlocks * mostOfSlots) interval *= 2;
    const borders = new Set([
      Math.floor((numPromptTokens - 1) / this.#blockSize) * this.#blockSize,
      state?.junction ?? 0,
    ]);
    for (let position = Math.floor(from / interval + 1) * interval; position <= to; position += interval)
      borders.add(position);
    return [...borders].filter((position) => position > from && position <= to).toSorted((a, b) => a - b);
  }
}
