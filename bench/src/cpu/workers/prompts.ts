/** Token ids below the control tokens, from a seeded xorshift: the same prompts for every contender. */
export class PromptSource {
  readonly #numTokens: number;
  #state: number;

  constructor(vocabSize: number, seed = 42) {
    this.#numTokens = vocabSize - 3;
    this.#state = seed;
  }

  next(length: number): number[] {
    return Array.from({ length }, () => {
      this.#state ^= this.#state << 13;
      this.#state ^= this.#state >>> 17;
      this.#state ^= this.#state << 5;
      return (this.#state >>> 0) % this.#numTokens;
    });
  }
}
