/** A growing list of token ids. */
export class TokenSink {
  #ids = new Int32Array(64);
  #length = 0;

  push(id: number): void {
    if (this.#length === this.#ids.length) this.#grow(this.#length + 1);
    this.#ids[this.#length++] = id;
  }

  pushAll(ids: ArrayLike<number>): void {
    const length = this.#length + ids.length;
    if (length > this.#ids.length) this.#grow(length);
    this.#ids.set(ids, this.#length);
    this.#length = length;
  }

  get length(): number {
    return this.#length;
  }

  /** The ids so far, as an array of their own. */
  toArray(): Int32Array {
    return this.#ids.slice(0, this.#length);
  }

  #grow(least: number): void {
    const larger = new Int32Array(Math.max(least, this.#ids.length * 2));
    larger.set(this.#ids.subarray(0, this.#length));
    this.#ids = larger;
  }
}
