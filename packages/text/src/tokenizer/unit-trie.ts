/** A trie over UTF-16 code units in one open-addressing hash table; node 0 is the root. */
export class UnitTrie {
  #parents = new Int32Array(256).fill(-1);
  #units = new Uint16Array(256);
  #children = new Int32Array(256);
  #values: Int32Array = new Int32Array(128).fill(-1);
  #nodes = 1;

  /** Later values replace earlier ones of an equal key. `value` must not be negative. */
  set(key: string, value: number): void {
    let node = 0;
    for (let index = 0; index < key.length; index++) node = this.#childOrNew(node, key.charCodeAt(index));
    this.#values[node] = value;
  }

  /** The node below `node` by a code unit, or -1. */
  child(node: number, unit: number): number {
    const slot = this.#slot(node, unit);
    return this.#parents[slot] === -1 ? -1 : this.#children[slot]!;
  }

  /** The value that ends at a node, or -1. */
  value(node: number): number {
    return this.#values[node]!;
  }

  #slot(node: number, unit: number): number {
    const mask = this.#parents.length - 1;
    let slot = (Math.imul(node, 0x9e3779b1) ^ Math.imul(unit, 0x85ebca6b)) >>> 0;
    slot = (slot ^ (slot >>> 15)) & mask;
    while (this.#parents[slot] !== -1 && (this.#parents[slot] !== node || this.#units[slot] !== unit))
      slot = (slot + 1) & mask;
    return slot;
  }

  #childOrNew(node: number, unit: number): number {
    const slot = this.#slot(node, unit);
    if (this.#parents[slot] !== -1) return this.#children[slot]!;
    if (this.#nodes * 2 >= this.#parents.length) {
      this.#rehash();
      return this.#childOrNew(node, unit);
    }
    const child = this.#nodes++;
    this.#parents[slot] = node;
    this.#units[slot] = unit;
    this.#children[slot] = child;
    if (child >= this.#values.length) {
      const values = new Int32Array(this.#values.length * 2).fill(-1);
      values.set(this.#values);
      this.#values = values;
    }
    return child;
  }

  #rehash(): void {
    const parents = this.#parents;
    const units = this.#units;
    const children = this.#children;
    this.#parents = new Int32Array(parents.length * 2).fill(-1);
    this.#units = new Uint16Array(parents.length * 2);
    this.#children = new Int32Array(parents.length * 2);
    for (let old = 0; old < parents.length; old++) {
      if (parents[old] === -1) continue;
      const slot = this.#slot(parents[old]!, units[old]!);
      this.#parents[slot] = parents[old]!;
      this.#units[slot] = units[old]!;
      this.#children[slot] = children[old]!;
    }
  }
}
