import type { Sequence } from "../../scheduler/sequence.js";
import type { Drafter, Guess } from "../../speculation/drafter.js";
import { Random } from "@octavo/text/testing/random";

/** Output tokens of a request's sequence, as far as they are known. */
export type Futures = (requestId: string, index: number) => readonly number[] | undefined;

/**
 * Guesses from the outcome, so that drafts of any length come true, and wrongly now and then, so that they end anywhere. As
 * a costly drafter it takes turns of the event loop, in which requests come and leave.
 */
export class OracleDrafter implements Drafter {
  readonly isCostly: boolean;
  readonly #futures: Futures;
  readonly #vocabSize: number;
  readonly #random: Random;
  readonly #share: number;
  readonly #sequences = new Set<Sequence>();

  constructor(
    futures: Futures,
    options: { vocabSize: number; seed: number; isCostly?: boolean; shareRight?: number },
  ) {
    this.isCostly = options.isCostly ?? false;
    this.#futures = futures;
    this.#vocabSize = options.vocabSize;
    this.#random = new Random(options.seed);
    this.#share = options.shareRight ?? 0.85;
  }

  /** Sequences guessed at and not released. */
  get numSequences(): number {
    return this.#sequences.size;
  }

  guess(guesses: readonly Guess[]): void | Promise<number> {
    for (const guess of guesses) this.#guess(guess);
    return this.isCostly ? new Promise((resolve) => setImmediate(() => resolve(0.1))) : undefined;
  }

  release(sequence: Sequence): void {
    this.#sequences.delete(sequence);
  }

  [Symbol.dispose](): void {}

  #guess({ sequence, most }: Guess): void {
    this.#sequences.add(sequence);
    const future = this.#futures(sequence.group.requestId, sequence.index) ?? [];
    for (let count = this.#random.below(most + 1); count > 0; count -= 1) {
      const right = future[sequence.numOutputTokens + sequence.draft.length];
      const isRight = right !== undefined && this.#random.next() < this.#share;
      sequence.draft.push(isRight ? right : this.#random.below(this.#vocabSize));
    }
  }
}
