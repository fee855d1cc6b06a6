import type { Sequence } from "../../scheduler/sequence.js";
import type { Drafter, DraftRequest } from "../../speculation/drafter.js";
import { TestRandom } from "@octavo/text/testing/random";

/** The output tokens that a sequence of a request is known to get. */
export type Futures = (requestId: string, index: number) => readonly number[] | undefined;

/**
 * Drafts from the known output, with wrong tokens now and then, so that drafts of any length are accepted up to any position.
 * As a costly drafter it takes turns of the event loop, in which requests come and leave.
 */
export class OracleDrafter implements Drafter {
  readonly isCostly: boolean;
  readonly #futures: Futures;
  readonly #vocabSize: number;
  readonly #random: TestRandom;
  readonly #share: number;
  readonly #sequences = new Set<Sequence>();

  constructor(
    futures: Futures,
    options: { vocabSize: number; seed: number; isCostly?: boolean; shareRight?: number },
  ) {
    this.isCostly = options.isCostly ?? false;
    this.#futures = futures;
    this.#vocabSize = options.vocabSize;
    this.#random = new TestRandom(options.seed);
    this.#share = options.shareRight ?? 0.85;
  }

  /** Sequences drafted for and not released. */
  get numSequences(): number {
    return this.#sequences.size;
  }

  draft(requests: readonly DraftRequest[]): void | Promise<number> {
    for (const request of requests) this.#draft(request);
    return this.isCostly ? new Promise((resolve) => setImmediate(() => resolve(0.1))) : undefined;
  }

  release(sequence: Sequence): void {
    this.#sequences.delete(sequence);
  }

  [Symbol.dispose](): void {}

  #draft({ sequence, maxTokens }: DraftRequest): void {
    this.#sequences.add(sequence);
    const future = this.#futures(sequence.group.requestId, sequence.index) ?? [];
    for (let count = this.#random.below(maxTokens + 1); count > 0; count -= 1) {
      const right = future[sequence.numOutputTokens + sequence.draft.length];
      const isRight = right !== undefined && this.#random.next() < this.#share;
      sequence.draft.push(isRight ? right : this.#random.below(this.#vocabSize));
    }
  }
}
