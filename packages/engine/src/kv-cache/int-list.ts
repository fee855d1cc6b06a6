/** A growable Int32Array: token ids and block tables, without boxing and without garbage per element. */
export class IntList {
  #values: Int32Array;
  #length = 0;

  constructor(capacity = 16) {
    this.#values = new Int32Array(Math.max(1, capacity));
  }

  static from(values: ArrayLike<number>, spare = 0): IntList {
    const list = new IntList(values.length + spare);
    list.#values.set(values);
    list.#length = values.length;
    return list;
  }

  get length(): number {
    return this.#length;
  }

  /** The backing array, valid up to `length` and until the next push. */
  get values(): Int32Array {
    return this.#values;
  }

  at(index: number): number {
    const value = index < this.#length ? this.#values[index] : undefined;
    if (value === undefined) throw new RangeError(`index ${index} is outside a list of ${this.#length}`);
    return value;
  }

  push(value: number): void {
    if (this.#length === this.#values.length) {
      const grown = new Int32Array(this.#values.length * 2);
      grown.set(this.#values);
      this.#values = grown;
    }
    this.#values[this.#length] = value;
    this.#length += 1;
  }

  /** Drops the elements from `length` on. */
  truncate(length: number): void {
    if (length < this.#length) this.#length = length;
  }

  slice(start = 0, end = this.#length): Int32Array {
    return this.#values.slice(start, Math.min(end, this.#length));
  }
}
