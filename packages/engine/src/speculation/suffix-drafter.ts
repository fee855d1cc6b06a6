import { prefixSalt, type Sequence } from "../scheduler/sequence.js";
import type { Drafter, DraftRequest } from "./drafter.js";
import { confidenceOf, LongestMatch, maxOccurrences } from "./longest-match.js";
import { SequenceIndexes } from "./sequence-indexes.js";
import { SharedOutputs } from "./shared-outputs.js";
import type { TokenIndex } from "./token-index.js";

export interface SuffixOptions {
  /** Longest suffix that is looked up, in tokens. */
  readonly maxTreeDepth: number;
  /** Finished requests whose outputs are kept for later requests; 0 keeps none. */
  readonly maxCachedRequests: number;
  /** Draft tokens per matching token, at most. */
  readonly maxSpecFactor: number;
  /** A draft ends before its estimated probability falls below this. */
  readonly minTokenProb: number;
}

const ownContext = 2;
/** Pairs of an adapter, or none, and a cache scope whose outputs are kept; each has an index of its own. */
const maxSharers = 8;

/**
 * Suffix decoding (Oliaro et al., "SuffixDecoding", 2024): drafts how the longest known suffix continued before, in the
 * sequence's own text and in the outputs of earlier requests, as far as it continued alike often enough. The paper's suffix
 * tree is walked without being built: its node counts are counts over the newest occurrences of the match.
 *
 * Outputs are kept per adapter, since an adapter changes what is written, and per cache scope, since the time that drafts save
 * would leak them. Requests with a cache salt neither contribute nor read outputs.
 */
export class SuffixDrafter implements Drafter {
  readonly isCostly = false;
  readonly #options: SuffixOptions;
  readonly #indexes = new SequenceIndexes(ownContext);
  /** By adapter and cache scope, least recently used first. */
  readonly #shared = new Map<string | undefined, SharedOutputs>();
  readonly #match = new LongestMatch();
  readonly #occurrences = new Int32Array(maxOccurrences);

  constructor(options: SuffixOptions) {
    this.#options = options;
  }

  /** Tokens of kept outputs. */
  get numSharedTokens(): number {
    let sum = 0;
    for (const { numTokens } of this.#shared.values()) sum += numTokens;
    return sum;
  }

  draft(requests: readonly DraftRequest[]): void {
    for (const request of requests) this.#draft(request);
  }

  release(sequence: Sequence): void {
    this.#indexes.release(sequence);
    const isPrivate = sequence.group.cacheSalt !== undefined;
    if (this.#options.maxCachedRequests === 0 || isPrivate || sequence.numOutputTokens === 0) return;
    const sharers = sharersOf(sequence);
    const shared = this.#shared.get(sharers) ?? new SharedOutputs(this.#options.maxCachedRequests);
    shared.add(sequence);
    this.#shared.delete(sharers);
    this.#shared.set(sharers, shared);
    for (const oldest of this.#shared.keys()) {
      if (this.#shared.size <= maxSharers) break;
      this.#shared.delete(oldest);
    }
  }

  [Symbol.dispose](): void {}

  #draft(request: DraftRequest): void {
    const { sequence, maxTokens } = request;
    const { draft } = sequence;
    const own = this.#walk(this.#indexes.of(sequence), sequence, maxTokens);
    request.confidence = confidenceOf(this.#match.length);
    const outputs = this.#shared.get(sharersOf(sequence));
    if (outputs === undefined || sequence.group.cacheSalt !== undefined) return;
    const ownLength = draft.length;
    const shared = this.#walk(outputs.index, sequence, maxTokens);
    if (shared > own) {
      request.confidence = confidenceOf(this.#match.length);
      draft.removeFirst(ownLength);
    } else draft.truncate(ownLength);
  }

  /** Appends to the sequence's draft and returns how many of these tokens are expected to be accepted. */
  #walk(index: TokenIndex, { tokens, draft }: Sequence, maxTokens: number): number {
    const { maxTreeDepth, maxSpecFactor, minTokenProb } = this.#options;
    const match = this.#match;
    match.find(index, tokens, maxTreeDepth);
    const limit = Math.min(maxTokens, Math.floor(match.length * maxSpecFactor));
    let numOccurrences = match.numOccurrences;
    this.#occurrences.set(match.occurrences);
    let probability = 1;
    let expected = 0;
    for (let count = 0; count < limit && numOccurrences > 0; count += 1) {
      const before = numOccurrences;
      numOccurrences = this.#keepMostFrequent(index, before, count);
      probability *= numOccurrences / before;
      if (numOccurrences === 0 || probability < minTokenProb) break;
      expected += probability;
      draft.push(index.at(this.#occurrences[0]! + count)!);
    }
    return expected;
  }

  /** Keeps the occurrences whose token `count` further on is the most frequent, the newest among equals. */
  #keepMostFrequent(index: TokenIndex, numOccurrences: number, count: number): number {
    let best: number | undefined;
    let bestCount = 0;
    for (
      let occurrence = 0;
      occurrence < numOccurrences && numOccurrences - occurrence > bestCount;
      occurrence += 1
    ) {
      const token = index.at(this.#occurrences[occurrence]! + count);
      if (token === undefined || token === best) continue;
      let same = 1;
      for (let other = occurrence + 1; other < numOccurrences; other += 1)
        if (index.at(this.#occurrences[other]! + count) === token) same += 1;
      if (same > bestCount) {
        best = token;
        bestCount = same;
      }
    }
    let kept = 0;
    for (let occurrence = 0; occurrence < numOccurrences; occurrence += 1) {
      if (best === undefined || index.at(this.#occurrences[occurrence]! + count) !== best) continue;
      this.#occurrences[kept] = this.#occurrences[occurrence]!;
      kept += 1;
    }
    return kept;
  }
}

/** Names the sequences that read each other's outputs. */
function sharersOf({ group: { adapter, account } }: Sequence): string | undefined {
  return prefixSalt({ adapter, cacheScope: account?.cacheScope });
}
