export interface ListMember {
  /** In the list that has it; -1 outside. */
  place: number;
}

/**
 * What is under way, in no order. A list and not a set: a set leaves its old table behind whenever it is rebuilt, and each table
 * keeps the next one and all that was in it alive until the next full collection.
 */
export class OpenList<T extends ListMember> {
  readonly #list: T[] = [];

  get all(): readonly T[] {
    return this.#list;
  }

  add(item: T): void {
    item.place = this.#list.length;
    this.#list.push(item);
  }

  /** Whether it was there. The last one takes its place. */
  remove(item: T): boolean {
    if (this.#list[item.place] !== item) return false;
    const last = this.#list.pop();
    if (last !== undefined && last !== item) {
      last.place = item.place;
      this.#list[item.place] = last;
    }
    item.place = -1;
    return true;
  }
}
