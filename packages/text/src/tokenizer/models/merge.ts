import type { MergeTable } from "./merge-table.js";

/** Up to this many symbols, scanning for the best pair beats keeping a heap. */
const scanLimit = 24;

/**
 * Applies merge rules to symbol ids in place, lowest rank first and leftmost among equals; returns how many
 * symbols remain at the front of `symbols`. O(n log n) beyond a few symbols.
 */
export function mergeSymbols(symbols: Int32Array, length: number, table: MergeTable): number {
  return length <= scanLimit ? mergeByScan(symbols, length, table) : mergeByHeap(symbols, length, table);
}

const scanRanks = new Int32Array(scanLimit);
const noRank = 0x7fffffff;

function mergeByScan(symbols: Int32Array, length: number, table: MergeTable): number {
  let count = length;
  const rankAt = (index: number): number => {
    const rank = table.rankOf(symbols[index]!, symbols[index + 1]!);
    return rank < 0 ? noRank : rank;
  };
  for (let index = 0; index + 1 < count; index++) scanRanks[index] = rankAt(index);
  for (;;) {
    let best = noRank;
    let at = 0;
    for (let index = 0; index + 1 < count; index++) {
      if (scanRanks[index]! < best) {
        best = scanRanks[index]!;
        at = index;
      }
    }
    if (best === noRank) return count;
    symbols[at] = table.mergedId(best);
    count--;
    for (let index = at + 1; index < count; index++) {
      symbols[index] = symbols[index + 1]!;
      scanRanks[index] = scanRanks[index + 1]!;
    }
    if (at > 0) scanRanks[at - 1] = rankAt(at - 1);
    if (at + 1 < count) scanRanks[at] = rankAt(at);
  }
}

/** Heap keys are rank * 2^32 + position: exact in a double while ranks stay below 2^21. */
export const positionRange = 2 ** 32;
export const maxMergeRules = 2 ** 21;

function mergeByHeap(symbols: Int32Array, length: number, table: MergeTable): number {
  const next = new Int32Array(length);
  const previous = new Int32Array(length);
  for (let index = 0; index < length; index++) {
    next[index] = index + 1 < length ? index + 1 : -1;
    previous[index] = index - 1;
  }
  const heap = new NumberHeap(length);
  for (let index = 0; index + 1 < length; index++) {
    const rank = table.rankOf(symbols[index]!, symbols[index + 1]!);
    if (rank >= 0) heap.append(rank * positionRange + index);
  }
  heap.heapify();
  const consider = (left: number, right: number): void => {
    const rank = table.rankOf(symbols[left]!, symbols[right]!);
    if (rank >= 0) heap.push(rank * positionRange + left);
  };
  while (heap.size > 0) {
    const key = heap.pop();
    const rank = Math.floor(key / positionRange);
    const left = key - rank * positionRange;
    const right = next[left]!;
    // an entry is stale when its left symbol was merged away or the pair there has changed
    if (symbols[left]! < 0 || right < 0 || table.rankOf(symbols[left]!, symbols[right]!) !== rank) continue;
    symbols[left] = table.mergedId(rank);
    symbols[right] = -1;
    const after = next[right]!;
    next[left] = after;
    if (after >= 0) {
      previous[after] = left;
      consider(left, after);
    }
    const before = previous[left]!;
    if (before >= 0) consider(before, left);
  }
  let count = 0;
  for (let index = 0; index >= 0 && index < length; index = next[index]!) symbols[count++] = symbols[index]!;
  return count;
}

/** A binary min-heap of doubles. */
export class NumberHeap {
  #keys: Float64Array;
  #size = 0;

  constructor(capacity: number) {
    this.#keys = new Float64Array(Math.max(capacity, 16));
  }

  get size(): number {
    return this.#size;
  }

  /** Adds without keeping order; call `heapify` before popping. */
  append(key: number): void {
    if (this.#size === this.#keys.length) {
      const larger = new Float64Array(this.#size * 2);
      larger.set(this.#keys);
      this.#keys = larger;
    }
    this.#keys[this.#size++] = key;
  }

  heapify(): void {
    for (let index = (this.#size >> 1) - 1; index >= 0; index--) this.#sink(index);
  }

  push(key: number): void {
    this.append(key);
    const keys = this.#keys;
    let index = this.#size - 1;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (keys[parent]! <= key) break;
      keys[index] = keys[parent]!;
      index = parent;
    }
    keys[index] = key;
  }

  /** The smallest key; the heap must not be empty. */
  pop(): number {
    const keys = this.#keys;
    const smallest = keys[0]!;
    this.#size--;
    if (this.#size > 0) {
      keys[0] = keys[this.#size]!;
      this.#sink(0);
    }
    return smallest;
  }

  #sink(start: number): void {
    const keys = this.#keys;
    const size = this.#size;
    const key = keys[start]!;
    let index = start;
    for (;;) {
      let child = index * 2 + 1;
      if (child >= size) break;
      if (child + 1 < size && keys[child + 1]! < keys[child]!) child++;
      if (keys[child]! >= key) break;
      keys[index] = keys[child]!;
      index = child;
    }
    keys[index] = key;
  }
}
