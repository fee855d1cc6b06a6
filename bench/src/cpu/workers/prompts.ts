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

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1
    ? (sorted[middle] ?? Number.NaN)
    : ((sorted[middle - 1] ?? Number.NaN) + (sorted[middle] ?? Number.NaN)) / 2;
}
