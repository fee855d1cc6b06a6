/** Merge rules in an open-addressing hash table: (left id, right id) to (rank, merged id). */
export class MergeTable {
  readonly #slots: Int32Array;
  readonly #mask: number;
  /** Triples (left, right, merged) in order of rank. */
  readonly #merges: Int32Array;

  /** `merges`: triples (left id, right id, merged id), best rank first; of equal pairs the last counts. */
  constructor(merges: Int32Array) {
    const count = merges.length / 3;
    let capacity = 16;
    while (capacity < count * 2) capacity *= 2;
    this.#mask = capacity - 1;
    this.#slots = new Int32Array(capacity).fill(-1);
    this.#merges = merges;
    for (let rank = 0; rank < count; rank++) {
      this.#slots[this.#slotOf(merges[rank * 3]!, merges[rank * 3 + 1]!)] = rank;
    }
  }

  /** The rank of the rule for a pair, or -1. Lower ranks merge first. */
  rankOf(left: number, right: number): number {
    return this.#slots[this.#slotOf(left, right)]!;
  }

  mergedId(rank: number): number {
    return this.#merges[rank * 3 + 2]!;
  }

  #slotOf(left: number, right: number): number {
    const merges = this.#merges;
    let slot = (Math.imul(left, 0x9e3779b1) ^ Math.imul(right, 0x85ebca6b)) >>> 0;
    slot = (slot ^ (slot >>> 15)) & this.#mask;
    for (;;) {
      const rank = this.#slots[slot]!;
      if (rank < 0 || (merges[rank * 3] === left && merges[rank * 3 + 1] === right)) return slot;
      slot = (slot + 1) & this.#mask;
    }
  }
}
