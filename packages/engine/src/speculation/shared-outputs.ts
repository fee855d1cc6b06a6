import type { Sequence } from "../scheduler/sequence.js";
import { TokenIndex } from "./token-index.js";

/** Capacity in tokens: 12 MiB when full. */
const maxTokens = 2 ** 20;
/** Tokens of context per index entry: shorter contexts occur everywhere and predict little. */
const contextLength = 3;

/** Outputs of the most recently finished sequences, as drafts for later ones. */
export class SharedOutputs {
  readonly index = new TokenIndex(contextLength, maxTokens);
  readonly #maxRequests: number;
  /** Start positions of the kept outputs, oldest first; those before `#first` were dropped. */
  #starts: number[] = [];
  #first = 0;

  constructor(maxRequests: number) {
    this.#maxRequests = maxRequests;
  }

  get numTokens(): number {
    return this.index.end - this.index.start;
  }

  /** Keeps an output, with enough of its prompt that its first token can be found. */
  add({ tokens, numPromptTokens }: Sequence): void {
    const { index } = this;
    const { values, length } = tokens;
    const endBefore = index.end;
    index.addBorder();
    const start = index.end;
    for (let at = Math.max(0, numPromptTokens - contextLength); at < length; at += 1) index.add(values[at]!);
    // The index cleared itself when its positions ran out.
    if (index.end < endBefore) this.#clear();
    else this.#starts.push(start);
    if (this.#starts.length - this.#first > this.#maxRequests) this.#first += 1;
    if (this.#first > 0) index.forgetBefore(this.#starts[this.#first] ?? index.end);
    if (this.#first < this.#maxRequests) return;
    this.#starts = this.#starts.slice(this.#first);
    this.#first = 0;
  }

  #clear(): void {
    this.#starts = [];
    this.#first = 0;
    this.index.clear();
  }
}
