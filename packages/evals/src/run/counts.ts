import type { Counted } from "./summary.js";

/** Most names; further ones are counted together. */
const maxNames = 64;
const others = "others";

/** How often each of a few names came. */
export class Counts {
  readonly #counts = new Map<string, number>();

  add(name: string): void {
    const isFull = this.#counts.size >= maxNames && !this.#counts.has(name);
    const key = isFull ? others : name;
    this.#counts.set(key, (this.#counts.get(key) ?? 0) + 1);
  }

  /** Most often first. */
  list(): Counted[] {
    return Array.from(this.#counts, ([name, count]) => ({ name, count })).toSorted(
      (a, b) => b.count - a.count,
    );
  }
}
