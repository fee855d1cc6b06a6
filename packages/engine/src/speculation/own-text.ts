import type { Sequence } from "../scheduler/sequence.js";
import { TokenIndex } from "./token-index.js";

/** Indexes of sequences' own prompts and outputs, each brought up to date when it is asked for. Positions are the sequence's. */
export class OwnTexts {
  readonly #contextLength: number;
  readonly #indexes = new Map<Sequence, TokenIndex>();

  constructor(contextLength: number) {
    this.#contextLength = contextLength;
  }

  of(sequence: Sequence): TokenIndex {
    const { tokens } = sequence;
    let index = this.#indexes.get(sequence);
    if (index === undefined) {
      index = new TokenIndex(this.#contextLength, Number.MAX_SAFE_INTEGER);
      this.#indexes.set(sequence, index);
    }
    const { values, length } = tokens;
    for (let position = index.end; position < length; position += 1) index.add(values[position]!);
    return index;
  }

  release(sequence: Sequence): void {
    this.#indexes.delete(sequence);
  }
}
