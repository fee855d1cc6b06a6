import type { PrefixCache } from "../kv-cache/prefix-cache.js";
import type { SequenceStates } from "./sequence-states.js";
import type { Sequence } from "./sequence.js";

/** A sequence waits if that saves at least this share of its own tokens... */
const minShareOfSequence = 1 / 2;
/** ...and of the tokens of the step it waits for. */
const minShareOfStep = 1 / 8;

/**
 * The prefixes computed by the step being planned. Of sequences that arrive together with a shared prefix, the first computes it
 * and the others wait one step to find it in the cache. A sequence waits only for a step that computes its own next
 * block, so every wait makes progress.
 */
export class PrefixesInFlight {
  readonly #cache: PrefixCache;
  readonly #blockSize: number;
  readonly #states: SequenceStates | undefined;
  #computing: Sequence[] = [];

  constructor(cache: PrefixCache, blockSize: number, states?: SequenceStates) {
    this.#cache = cache;
    this.#blockSize = blockSize;
    this.#states = states;
  }

  /** Starts the admissions of a step that computes `running` so far. */
  begin(running: readonly Sequence[]): void {
    this.#computing = running.filter((sequence) => sequence.numScheduled > 0 && !sequence.isDecoding);
  }

  add(sequence: Sequence): void {
    this.#computing.push(sequence);
  }

  /**
   * Whether a sequence with `numHits` cached blocks, of which `maxTokens` tokens may come from the cache, should wait for this
   * step, which has `stepTokens` tokens so far.
   */
  isWorthAwaiting(sequence: Sequence, numHits: number, maxTokens: number, stepTokens: number): boolean {
    const wanted = sequence.numTokens - numHits * this.#blockSize;
    const minSaved = Math.max(wanted * minShareOfSequence, stepTokens * minShareOfStep, 1);
    const end = Math.floor(maxTokens / this.#blockSize);
    if ((end - numHits) * this.#blockSize < minSaved) return false;
    return this.#computing.some((other) => {
      const computed = Math.floor((other.numComputed + other.numScheduled) / this.#blockSize);
      if (other.numRegistered > numHits || computed <= numHits) return false;
      const both = Math.min(end, Math.floor(other.numTokens / this.#blockSize));
      const shared = this.#cache.countShared(sequence.prefix, other.prefix, numHits, both) * this.#blockSize;
      if (this.#states === undefined) return shared >= minSaved;
      // It could go on only from a state that the other one leaves.
      const border = this.#states.lastBorder(other, numHits * this.#blockSize + shared);
      return border - numHits * this.#blockSize >= minSaved;
    });
  }
}
