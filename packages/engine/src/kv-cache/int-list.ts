/** Largest growth step: a long prompt is followed by few tokens. */
const maxGrowth = 4096;

/** A growable Int32Array for token ids and block tables: no boxing and no garbage per element. */
export class IntList {
  #values: Int32Array;
  #length = 0;
  /** `#values` belongs to the caller: the next push copies it. */
  #isShared = false;

  constructor(capacity = 16) {
    this.#values = new Int32Array(capacity);
  }

  static from(values: ArrayLike<number>): IntList {
    const list = new IntList(values.length);
    list.#values.set(values);
    list.#length = values.length;
    return list;
  }

  /** Starts as `values`, which must not change; the first push copies them. */
  static sharing(values: Int32Array): IntList {
    const list = new IntList(0);
    list.#values = values;
    list.#length = values.length;
    list.#isShared = true;
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
    if (this.#isShared || this.#length === this.#values.length) this.#grow();
    this.#values[this.#length] = value;
    this.#length += 1;
  }

  /** Drops the elements from `length` on. */
  truncate(length: number): void {
    if (length < this.#length) this.#length = length;
  }

  /** Drops the first `count` elements; the others move up. */
  removeFirst(count: number): void {
    if (this.#isShared) this.#grow();
    this.#values.copyWithin(0, count, this.#length);
    this.#length = Math.max(0, this.#length - count);
  }

  slice(start = 0, end = this.#length): Int32Array {
    return this.#values.slice(start, Math.min(end, this.#length));
  }

  #grow(): void {
    const grown = new Int32Array(this.#length + Math.max(16, Math.min(this.#length, maxGrowth)));
    grown.set(this.#values.subarray(0, this.#length));
    this.#values = grown;
    this.#isShared = false;
  }
}
