import type { Sequence } from "../scheduler/sequence.js";
import type { Drafter, DraftRequest } from "./drafter.js";
import { confidenceOf, LongestMatch } from "./longest-match.js";
import { SequenceIndexes } from "./sequence-indexes.js";

export interface NgramOptions {
  /** Shortest suffix that must match, at least 1 token; longer matches are preferred up to `promptLookupMax`. */
  readonly promptLookupMin: number;
  readonly promptLookupMax: number;
}

/** Longer matches are treated alike. */
const maxContext = 32;

/**
 * Prompt lookup (Saxena 2023; vLLM's `ngram`): where the last tokens of a sequence occurred before in its own prompt or
 * output, what followed them there is the draft. Costs nothing, and is accepted where an answer quotes its prompt.
 */
export class NgramDrafter implements Drafter {
  readonly isCostly = false;
  readonly #options: NgramOptions;
  readonly #indexes: SequenceIndexes;
  readonly #match = new LongestMatch();

  constructor(options: NgramOptions) {
    this.#options = options;
    this.#indexes = new SequenceIndexes(options.promptLookupMin);
  }

  draft(requests: readonly DraftRequest[]): void {
    for (const request of requests) this.#draft(request);
  }

  release(sequence: Sequence): void {
    this.#indexes.release(sequence);
  }

  [Symbol.dispose](): void {}

  #draft(request: DraftRequest): void {
    const { draft, tokens } = request.sequence;
    const index = this.#indexes.of(request.sequence);
    this.#match.find(index, tokens, maxContext, this.#options.promptLookupMax);
    if (this.#match.length < this.#options.promptLookupMin) return;
    request.confidence = confidenceOf(this.#match.length);
    const occurrence = this.#match.occurrences[0]!;
    for (let count = 0; count < request.maxTokens; count += 1) {
      const position = occurrence + count;
      // A repeating text continues in the tokens just drafted.
      draft.push(position < index.end ? index.at(position)! : draft.at(position - index.end));
    }
  }
}
