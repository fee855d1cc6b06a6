import { OctavoError } from "@octavo/protocol/errors";

/** A binary heap that knows the position of each item, so that any can be removed or moved. Items are distinct. */
export class IndexedHeap<Item> implements Iterable<Item> {
  readonly #before: (a: Item, b: Item) => boolean;
  readonly #heap: Item[] = [];
  readonly #positions = new Map<Item, number>();

  /** `before` is a strict total order. */
  constructor(before: (a: Item, b: Item) => boolean) {
    this.#before = before;
  }

  get size(): number {
    return this.#heap.length;
  }

  peek(): Item | undefined {
    return this.#heap[0];
  }

  has(item: Item): boolean {
    return this.#positions.has(item);
  }

  /** In no particular order. */
  [Symbol.iterator](): IterableIterator<Item> {
    return this.#heap.values();
  }

  add(item: Item): void {
    this.#heap.push(item);
    this.#up(item, this.#heap.length - 1);
  }

  /** Removes an item at any position; false when it is not in the heap. */
  remove(item: Item): boolean {
    const position = this.#positions.get(item);
    if (position === undefined) return false;
    this.#positions.delete(item);
    const last = this.#heap.pop();
    if (last === undefined || last === item) return true;
    this.#up(last, position);
    this.#down(last, this.#positions.get(last) ?? position);
    return true;
  }

  /** Moves an item whose order has changed to its new position; does nothing when it is not in the heap. */
  update(item: Item): void {
    const position = this.#positions.get(item);
    if (position === undefined) return;
    this.#up(item, position);
    this.#down(item, this.#positions.get(item) ?? position);
  }

  /** Throws `internal_error` naming `what` unless every item is in heap order. */
  checkIntegrity(what: string): void {
    for (const [position, item] of this.#heap.entries()) {
      const parent = position === 0 ? undefined : this.#heap[(position - 1) >> 1];
      if (this.#positions.get(item) !== position || (parent !== undefined && this.#before(item, parent))) {
        throw new OctavoError("internal_error", `${what}: entry ${position} is out of place`);
      }
    }
    if (this.#positions.size !== this.#heap.length) {
      throw new OctavoError("internal_error", `${what}: positions and entries differ in number`);
    }
  }

  #place(item: Item, position: number): void {
    this.#heap[position] = item;
    this.#positions.set(item, position);
  }

  #up(item: Item, start: number): void {
    let position = start;
    while (position > 0) {
      const parentPosition = (position - 1) >> 1;
      const parent = this.#heap[parentPosition];
      if (parent === undefined || !this.#before(item, parent)) break;
      this.#place(parent, position);
      position = parentPosition;
    }
    this.#place(item, position);
  }

  #down(item: Item, start: number): void {
    let position = start;
    for (;;) {
      const left = this.#heap[2 * position + 1];
      const right = this.#heap[2 * position + 2];
      const rightFirst = left !== undefined && right !== undefined && this.#before(right, left);
      const child = rightFirst ? right : left;
      if (child === undefined || !this.#before(child, item)) break;
      this.#place(child, position);
      position = 2 * position + (rightFirst ? 2 : 1);
    }
    this.#place(item, position);
  }
}
