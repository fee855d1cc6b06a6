/** How many of the leading positions of each block a drafting head has read: a cached prefix may have been computed while it did not. */
export class ReadEntries {
  readonly #blockSize: number;
  readonly #counts = new Map<number, number>();

  constructor(blockSize: number) {
    this.#blockSize = blockSize;
  }

  /** The model computes the positions from `position` on: what was read of them before was another text. */
  truncate(blocks: Int32Array, position: number): void {
    for (let at = Math.floor(position / this.#blockSize); at < blocks.length; at += 1) {
      const count = Math.max(0, position - at * this.#blockSize);
      if ((this.#counts.get(blocks[at]!) ?? 0) > count) this.#counts.set(blocks[at]!, count);
    }
  }

  /** Whether all positions before `end` were read. */
  reach(blocks: Int32Array, end: number): boolean {
    for (let at = 0; at * this.#blockSize < end; at += 1) {
      const needed = Math.min(this.#blockSize, end - at * this.#blockSize);
      if ((this.#counts.get(blocks[at]!) ?? 0) < needed) return false;
    }
    return true;
  }

  /** `count` positions from `position` on are read now, and those before them were. */
  extend(blocks: { readonly values: Int32Array }, position: number, count: number): void {
    const end = position + count;
    for (let at = Math.floor(position / this.#blockSize); at * this.#blockSize < end; at += 1)
      this.#counts.set(blocks.values[at]!, Math.min(this.#blockSize, end - at * this.#blockSize));
  }

  clear(): void {
    this.#counts.clear();
  }
}
