import type { IntList } from "../kv-cache/int-list.js";
import type { Sequence } from "../scheduler/sequence.js";
import type { Drafter, Guess } from "./drafter.js";
import { confidenceOf, LongestMatch, mostPlaces } from "./longest-match.js";
import { OwnTexts } from "./own-text.js";
import { TokenIndex } from "./token-index.js";

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
/** Longer among all outputs, where two tokens say little and have stood in many places. */
const sharedContext = 3;
/** Tokens of outputs that are remembered: 12 MiB of index. */
const sharedTokens = 2 ** 20;

/**
 * Suffix decoding (Oliaro et al., "SuffixDecoding", 2024): guesses by how the longest known context has gone on before, in
 * the sequence's own text and in the outputs of earlier requests, as far as it went on the same way often enough. The
 * suffix tree of the paper is walked without being built: its nodes' counts are those of the newest places of the match.
 *
 * Requests with a cache salt neither remember nor are told of others: the time that guesses save would tell on them.
 */
export class SuffixDrafter implements Drafter {
  readonly isCostly = false;
  readonly #options: SuffixOptions;
  readonly #texts = new OwnTexts(ownContext);
  readonly #shared = new TokenIndex(sharedContext, sharedTokens);
  /** Where remembered outputs begin, oldest first. */
  readonly #starts: number[] = [];
  readonly #match = new LongestMatch();
  readonly #places = new Int32Array(mostPlaces);

  constructor(options: SuffixOptions) {
    this.#options = options;
  }

  /** Tokens of remembered outputs. */
  get numRemembered(): number {
    return this.#shared.end - this.#shared.start;
  }

  guess(guesses: readonly Guess[]): void {
    for (const guess of guesses) this.#guess(guess);
  }

  release(sequence: Sequence): void {
    this.#texts.release(sequence);
    const isPrivate = sequence.group.cacheSalt !== undefined;
    if (this.#options.maxCachedRequests > 0 && !isPrivate && sequence.numOutputTokens > 0)
      this.#remember(sequence);
  }

  [Symbol.dispose](): void {}

  #guess(guess: Guess): void {
    const { sequence, most } = guess;
    const { draft } = sequence;
    const own = this.#walk(this.#texts.of(sequence), sequence, most);
    guess.confidence = confidenceOf(this.#match.length);
    if (sequence.group.cacheSalt !== undefined) return;
    const ownLength = draft.length;
    const shared = this.#walk(this.#shared, sequence, most);
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

  /** Keeps an output, with as much of its prompt as makes its first token findable. */
  #remember({ tokens, numPromptTokens }: Sequence): void {
    const index = this.#shared;
    index.addBorder();
    this.#starts.push(index.end);
    remembered(index, tokens, Math.max(0, numPromptTokens - sharedContext));
    const starts = this.#starts;
    const isKnown = (start: number): boolean => start >= index.start && start < index.end;
    while (starts.length > 0 && (starts.length > this.#options.maxCachedRequests || !isKnown(starts[0]!)))
      starts.shift();
    index.forgetBefore(starts[0] ?? index.end);
  }
}

function remembered(index: TokenIndex, { values, length }: IntList, from: number): void {
  for (let position = from; position < length; position += 1) index.add(values[position]!);
}
