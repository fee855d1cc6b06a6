import { OctavoError } from "@octavo/protocol/errors";
import { IndexedHeap } from "./indexed-heap.js";
import type { Sequence } from "./sequence.js";

/** Waiting sequences in an order that does not change while they wait. */
export class WaitingQueue implements Iterable<Sequence> {
  readonly #heap: IndexedHeap<Sequence>;

  constructor(order: { before(a: Sequence, b: Sequence): boolean }) {
    this.#heap = new IndexedHeap((a, b) => order.before(a, b));
  }

  get size(): number {
    return this.#heap.size;
  }

  peek(): Sequence | undefined {
    return this.#heap.peek();
  }

  /** In no particular order. */
  [Symbol.iterator](): IterableIterator<Sequence> {
    return this.#heap[Symbol.iterator]();
  }

  add(sequence: Sequence): void {
    this.#heap.add(sequence);
  }

  /** Removes a sequence wherever it stands; false when it does not wait. */
  remove(sequence: Sequence): boolean {
    return this.#heap.remove(sequence);
  }

  checkIntegrity(): void {
    this.#heap.checkIntegrity("waiting queue");
    for (const sequence of this.#heap) {
      if (sequence.status !== "waiting") {
        const { requestId } = sequence.group;
        throw new OctavoError("internal_error", `waiting queue: ${requestId} should not wait`);
      }
    }
  }
}
