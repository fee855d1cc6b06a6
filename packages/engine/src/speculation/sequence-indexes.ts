import type { Sequence } from "../scheduler/sequence.js";
import { TokenIndex } from "./token-index.js";

/** Token indexes of sequences' own prompts and outputs, extended when read. Positions are those of the sequence. */
export class SequenceIndexes {
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
