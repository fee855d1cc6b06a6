import { OctavoError } from "@octavo/protocol";
import type { SchedulingPolicy } from "./scheduling-policy.js";
import type { Sequence } from "./sequence.js";

/** Waiting sequences in their policy's order: a binary heap that knows where each sequence stands, so that any can leave. */
export class WaitingQueue {
  readonly #policy: SchedulingPolicy;
  readonly #heap: Sequence[] = [];
  readonly #positions = new Map<Sequence, number>();

  constructor(policy: SchedulingPolicy) {
    this.#policy = policy;
  }

  get size(): number {
    return this.#heap.length;
  }

  peek(): Sequence | undefined {
    return this.#heap[0];
  }

  /** In no particular order. */
  [Symbol.iterator](): IterableIterator<Sequence> {
    return this.#heap.values();
  }

  add(sequence: Sequence): void {
    this.#heap.push(sequence);
    this.#up(sequence, this.#heap.length - 1);
  }

  /** Removes a sequence wherever it stands; false when it does not wait. */
  remove(sequence: Sequence): boolean {
    const position = this.#positions.get(sequence);
    if (position === undefined) return false;
    this.#positions.delete(sequence);
    const last = this.#heap.pop();
    if (last === undefined || last === sequence) return true;
    this.#up(last, position);
    this.#down(last, this.#positions.get(last) ?? position);
    return true;
  }

  checkIntegrity(): void {
    for (const [position, sequence] of this.#heap.entries()) {
      const parent = position === 0 ? undefined : this.#heap[(position - 1) >> 1];
      if (
        this.#positions.get(sequence) !== position ||
        sequence.status !== "waiting" ||
        (parent !== undefined && this.#policy.before(sequence, parent))
      ) {
        throw new OctavoError("internal_error", `waiting queue: entry ${position} is out of place`);
      }
    }
    if (this.#positions.size !== this.#heap.length) {
      throw new OctavoError("internal_error", "waiting queue: positions and entries differ in number");
    }
  }

  #place(sequence: Sequence, position: number): void {
    this.#heap[position] = sequence;
    this.#positions.set(sequence, position);
  }

  #up(sequence: Sequence, start: number): void {
    let position = start;
    while (position > 0) {
      const parentPosition = (position - 1) >> 1;
      const parent = this.#heap[parentPosition];
      if (parent === undefined || !this.#policy.before(sequence, parent)) break;
      this.#place(parent, position);
      position = parentPosition;
    }
    this.#place(sequence, position);
  }

  #down(sequence: Sequence, start: number): void {
    let position = start;
    for (;;) {
      const left = this.#heap[2 * position + 1];
      const right = this.#heap[2 * position + 2];
      const rightFirst = left !== undefined && right !== undefined && this.#policy.before(right, left);
      const child = rightFirst ? right : left;
      if (child === undefined || !this.#policy.before(child, sequence)) break;
      this.#place(child, position);
      position = 2 * position + (rightFirst ? 2 : 1);
    }
    this.#place(sequence, position);
  }
}
