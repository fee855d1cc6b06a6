import type { BlockPool } from "../kv-cache/block-pool.js";
import { IntList } from "../kv-cache/int-list.js";
import type { CachedPrefix, PrefixCache } from "../kv-cache/prefix-cache.js";
import { PrefixesInFlight } from "./prefixes-in-flight.js";
import type { SequenceStates } from "./sequence-states.js";
import type { Sequence } from "./sequence.js";

/** Finds the prefix of a waiting sequence that is already computed, by a sibling or an earlier request, or is about to be. */
export class ComputedPrefix {
  readonly #blockSize: number;
  readonly #cache: PrefixCache | undefined;
  readonly #inFlight: PrefixesInFlight | undefined;
  readonly #hasStates: boolean;
  readonly #hits = new IntList();
  #cached: CachedPrefix = { numMatched: 0 };

  constructor(pool: BlockPool, cache: PrefixCache | undefined, states?: SequenceStates) {
    this.#blockSize = pool.blockSize;
    this.#cache = cache;
    this.#inFlight = cache && new PrefixesInFlight(cache, pool.blockSize, states);
    this.#hasStates = states !== undefined;
  }

  /** Blocks found by the latest `find`. */
  get hits(): IntList {
    return this.#hits;
  }

  /** What the latest `find` found in the cache. */
  get cached(): CachedPrefix {
    return this.#cached;
  }

  /** Starts the admissions of a step that computes `running` so far. */
  begin(running: readonly Sequence[]): void {
    this.#inFlight?.begin(running);
  }

  /** Adds a sequence to the step. */
  add(sequence: Sequence): void {
    this.#inFlight?.add(sequence);
  }

  /**
   * Fills `hits` with the blocks that already hold a prefix of the sequence, leaving at least one token to compute. Returns how
   * many of its tokens may come from blocks.
   */
  find(sequence: Sequence): number {
    this.#hits.truncate(0);
    const maxTokens = Math.min(sequence.numTokens - 1, sequence.firstWantedRow);
    this.#cached = this.#cache?.find(sequence.prefix, maxTokens, this.#hits) ?? { numMatched: 0 };
    // A sibling's blocks are of no use without the state behind them, which is found in the cache alone.
    if (this.#hasStates) return maxTokens;
    const sibling = this.#siblingWithPrompt(sequence);
    if (sibling === undefined) return maxTokens;
    const shared = Math.floor(Math.min(maxTokens, sequence.numPromptTokens - 1) / this.#blockSize);
    if (shared <= this.#hits.length) return maxTokens;
    this.#hits.truncate(0);
    for (let index = 0; index < shared; index += 1) this.#hits.push(sibling.blocks.at(index));
    return maxTokens;
  }

  /**
   * Whether the sequence of the latest `find` should wait for this step, which has `stepTokens` tokens so far: a sibling
   * computes their shared prompt in it, or another request a shared prefix that will then be in the cache.
   */
  isWorthAwaiting(sequence: Sequence, maxTokens: number, stepTokens: number): boolean {
    return (
      this.#awaitsSibling(sequence) ||
      (this.#inFlight?.isWorthAwaiting(sequence, this.#hits.length, maxTokens, stepTokens) ?? false)
    );
  }

  #siblingWithPrompt(sequence: Sequence): Sequence | undefined {
    const shareable = this.#shareableTokens(sequence);
    return sequence.group.sequences.find(
      (other) => other !== sequence && other.status === "running" && other.numComputed >= shareable,
    );
  }

  #awaitsSibling(sequence: Sequence): boolean {
    const { sequences } = sequence.group;
    if (this.#hasStates && this.#cache === undefined) return false;
    if (sequences.length === 1 || this.#shareableTokens(sequence) === 0) return false;
    return (
      sequences.some((other) => other.status === "running") && this.#siblingWithPrompt(sequence) === undefined
    );
  }

  /** Tokens in the full blocks of its prompt. */
  #shareableTokens(sequence: Sequence): number {
    return Math.floor((sequence.numPromptTokens - 1) / this.#blockSize) * this.#blockSize;
  }
}
