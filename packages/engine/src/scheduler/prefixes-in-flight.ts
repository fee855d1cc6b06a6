import type { PrefixCache } from "../kv-cache/prefix-cache.js";
import type { Sequence } from "./sequence.js";

/** A wait is worth what it saves if that is at least this share of what the sequence would compute, ... */
const minShareOfSequence = 1 / 2;
/** ... and of the step: who waits for a long step gains little by saving a few tokens of it. */
const minShareOfStep = 1 / 8;

/**
 * The prefixes that the step being planned computes. Of sequences that arrive together with a prefix in common, the first
 * computes it and the others wait, so that they find it in the cache a step later. A sequence waits only for a step that
 * computes its own next block: each wait brings it forward, so it ends.
 */
export class PrefixesInFlight {
  readonly #cache: PrefixCache;
  readonly #blockSize: number;
  #computing: Sequence[] = [];

  constructor(cache: PrefixCache, blockSize: number) {
    this.#cache = cache;
    this.#blockSize = blockSize;
  }

  /** Starts a step with the sequences that it computes so far. */
  begin(running: readonly Sequence[]): void {
    this.#computing = running.filter((sequence) => sequence.numScheduled > 0 && !sequence.isDecoding);
  }

  add(sequence: Sequence): void {
    this.#computing.push(sequence);
  }

  /**
   * Whether a sequence that finds `numHits` blocks in the cache, and of which `maxTokens` may come from it, should wait for
   * this step, which has `stepTokens` tokens already.
   */
  isWorthAwaiting(sequence: Sequence, numHits: number, maxTokens: number, stepTokens: number): boolean {
    const wanted = sequence.numTokens - numHits * this.#blockSize;
    const least = Math.max(wanted * minShareOfSequence, stepTokens * minShareOfStep, 1);
    const end = Math.floor(maxTokens / this.#blockSize);
    if ((end - numHits) * this.#blockSize < least) return false;
    return this.#computing.some((other) => {
      const computed = Math.floor((other.numComputed + other.numScheduled) / this.#blockSize);
      if (other.numRegistered > numHits || computed <= numHits) return false;
      const both = Math.min(end, Math.floor(other.numTokens / this.#blockSize));
      return this.#cache.countShared(sequence.prefix, other.prefix, numHits, both) * this.#blockSize >= least;
    });
  }
}
