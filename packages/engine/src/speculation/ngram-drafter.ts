import type { Sequence } from "../scheduler/sequence.js";
import type { Drafter, Guess } from "./drafter.js";
import { confidenceOf, LongestMatch } from "./longest-match.js";
import { OwnTexts } from "./own-text.js";

export interface NgramOptions {
  /** Last tokens that must have stood before, at least 1; longer matches are preferred up to `promptLookupMax`. */
  readonly promptLookupMin: number;
  readonly promptLookupMax: number;
}

/** Longer matches are told apart no further. */
const longestContext = 32;

/**
 * Prompt lookup (Saxena 2023; vLLM's `ngram`): where the last tokens of a sequence have stood before in its own prompt or
 * output, what followed them then is guessed to follow again. Free of cost, and right where an answer quotes its prompt.
 */
export class NgramDrafter implements Drafter {
  readonly isCostly = false;
  readonly #options: NgramOptions;
  readonly #texts: OwnTexts;
  readonly #match = new LongestMatch();

  constructor(options: NgramOptions) {
    this.#options = options;
    this.#texts = new OwnTexts(options.promptLookupMin);
  }

  guess(guesses: readonly Guess[]): void {
    for (const guess of guesses) this.#guess(guess);
  }

  release(sequence: Sequence): void {
    this.#texts.release(sequence);
  }

  [Symbol.dispose](): void {}

  #guess(guess: Guess): void {
    const { draft, tokens } = guess.sequence;
    const index = this.#texts.of(guess.sequence);
    this.#match.find(index, tokens, longestContext, this.#options.promptLookupMax);
    if (this.#match.length < this.#options.promptLookupMin) return;
    guess.confidence = confidenceOf(this.#match.length);
    const place = this.#match.places[0]!;
    for (let count = 0; count < guess.most; count += 1) {
      const position = place + count;
      // A text that repeats itself goes on in what has just been guessed.
      draft.push(position < index.end ? index.at(position)! : draft.at(position - index.end));
    }
  }
}
