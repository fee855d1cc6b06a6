import type { Sequence } from "../scheduler/sequence.js";
import type { Drafter, Guess } from "./drafter.js";
import { confidenceOf, LongestMatch, mostPlaces } from "./longest-match.js";
import { OwnTexts } from "./own-text.js";
import { SharedOutputs } from "./shared-outputs.js";
import type { TokenIndex } from "./token-index.js";

export interface SuffixOptions {
  /** Last tokens that are looked for at most. */
  readonly maxTreeDepth: number;
  /** Finished requests whose outputs are remembered for all that follow; 0 remembers none. */
  readonly maxCachedRequests: number;
  /** Guesses at most, per token that matched. */
  readonly maxSpecFactor: number;
  /** Guesses end where they are less likely than this, by what followed before. */
  readonly minTokenProb: number;
}

const ownContext = 2;
/** Adapters whose outputs are remembered, the model without any among them; each may fill its own memory. */
const mostAdapters = 8;
const noAdapter = 0;

/**
 * Suffix decoding (Oliaro et al., "SuffixDecoding", 2024): guesses by how the longest known context has gone on before, in
 * the sequence's own text and in the outputs of earlier requests, as far as it went on the same way often enough. The
 * suffix tree of the paper is walked without being built: its nodes' counts are those of the newest places of the match.
 *
 * Outputs under an adapter are remembered apart, since it is they that it goes on to write. Requests with a cache salt neither
 * leave anything behind nor are told of others: the time that guesses save would tell on them.
 */
export class SuffixDrafter implements Drafter {
  readonly isCostly = false;
  readonly #options: SuffixOptions;
  readonly #texts = new OwnTexts(ownContext);
  /** By adapter, the one that a request last ended under at the end. */
  readonly #shared = new Map<number, SharedOutputs>();
  readonly #match = new LongestMatch();
  readonly #places = new Int32Array(mostPlaces);

  constructor(options: SuffixOptions) {
    this.#options = options;
  }

  /** Tokens of remembered outputs. */
  get numRemembered(): number {
    let sum = 0;
    for (const { numTokens } of this.#shared.values()) sum += numTokens;
    return sum;
  }

  guess(guesses: readonly Guess[]): void {
    for (const guess of guesses) this.#guess(guess);
  }

  release(sequence: Sequence): void {
    this.#texts.release(sequence);
    const isPrivate = sequence.group.cacheSalt !== undefined;
    if (this.#options.maxCachedRequests === 0 || isPrivate || sequence.numOutputTokens === 0) return;
    const id = adapterOf(sequence);
    const shared = this.#shared.get(id) ?? new SharedOutputs(this.#options.maxCachedRequests);
    shared.remember(sequence);
    this.#shared.delete(id);
    this.#shared.set(id, shared);
    for (const oldest of this.#shared.keys()) {
      if (this.#shared.size <= mostAdapters) break;
      this.#shared.delete(oldest);
    }
  }

  [Symbol.dispose](): void {}

  #guess(guess: Guess): void {
    const { sequence, most } = guess;
    const { draft } = sequence;
    const own = this.#walk(this.#texts.of(sequence), sequence, most);
    guess.confidence = confidenceOf(this.#match.length);
    const outputs = this.#shared.get(adapterOf(sequence));
    if (outputs === undefined || sequence.group.cacheSalt !== undefined) return;
    const ownLength = draft.length;
    const shared = this.#walk(outputs.index, sequence, most);
    if (shared > own) {
      guess.confidence = confidenceOf(this.#match.length);
      draft.removeFirst(ownLength);
    } else draft.truncate(ownLength);
  }

  /** Appends guesses to the sequence's draft and returns how many of them are expected to come true. */
  #walk(index: TokenIndex, { tokens, draft }: Sequence, most: number): number {
    const { maxTreeDepth, maxSpecFactor, minTokenProb } = this.#options;
    const match = this.#match;
    match.find(index, tokens, maxTreeDepth);
    const limit = Math.min(most, Math.floor(match.length * maxSpecFactor));
    let numPlaces = match.numPlaces;
    this.#places.set(match.places);
    let probability = 1;
    let expected = 0;
    for (let count = 0; count < limit && numPlaces > 0; count += 1) {
      const before = numPlaces;
      numPlaces = this.#keepMostFrequent(index, before, count);
      probability *= numPlaces / before;
      if (numPlaces === 0 || probability < minTokenProb) break;
      expected += probability;
      draft.push(index.at(this.#places[0]! + count)!);
    }
    return expected;
  }

  /** Of the places in play keeps those whose token `count` further on is the most frequent, the newest among equals. */
  #keepMostFrequent(index: TokenIndex, numPlaces: number, count: number): number {
    let best: number | undefined;
    let bestCount = 0;
    for (let place = 0; place < numPlaces && numPlaces - place > bestCount; place += 1) {
      const token = index.at(this.#places[place]! + count);
      if (token === undefined || token === best) continue;
      let same = 1;
      for (let other = place + 1; other < numPlaces; other += 1)
        if (index.at(this.#places[other]! + count) === token) same += 1;
      if (same > bestCount) {
        best = token;
        bestCount = same;
      }
    }
    let kept = 0;
    for (let place = 0; place < numPlaces; place += 1) {
      if (best === undefined || index.at(this.#places[place]! + count) !== best) continue;
      this.#places[kept] = this.#places[place]!;
      kept += 1;
    }
    return kept;
  }
}

function adapterOf({ group }: Sequence): number {
  return group.adapter?.id ?? noAdapter;
}
