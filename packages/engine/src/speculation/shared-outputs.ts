import type { Sequence } from "../scheduler/sequence.js";
import { TokenIndex } from "./token-index.js";

/** Tokens that are remembered: 12 MiB of index when it is full. */
const mostTokens = 2 ** 20;
/** Contexts of as many tokens are told apart: fewer say little and have stood in many places. */
const contextLength = 3;

/** Outputs of finished sequences, the newest ones, for those that come later. */
export class SharedOutputs {
  readonly index = new TokenIndex(contextLength, mostTokens);
  readonly #mostRequests: number;
  /** Where remembered outputs begin, oldest first; those before `#first` were forgotten. */
  #starts: number[] = [];
  #first = 0;

  constructor(mostRequests: number) {
    this.#mostRequests = mostRequests;
  }

  get numTokens(): number {
    return this.index.end - this.index.start;
  }

  /** Keeps an output, with as much of its prompt as makes its first token findable. */
  remember({ tokens, numPromptTokens }: Sequence): void {
    const { index } = this;
    const { values, length } = tokens;
    const endBefore = index.end;
    index.addBorder();
    const start = index.end;
    for (let at = Math.max(0, numPromptTokens - contextLength); at < length; at += 1) index.add(values[at]!);
    // The index numbers its positions anew when they run out; what was known then is gone.
    if (index.end < endBefore) this.#clear();
    else this.#starts.push(start);
    if (this.#starts.length - this.#first > this.#mostRequests) this.#first += 1;
    if (this.#first > 0) index.forgetBefore(this.#starts[this.#first] ?? index.end);
    if (this.#first < this.#mostRequests) return;
    this.#starts = this.#starts.slice(this.#first);
    this.#first = 0;
  }

  #clear(): void {
    this.#starts = [];
    this.#first = 0;
    this.index.clear();
  }
}
