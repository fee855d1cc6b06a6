/** A growable Float32Array for milliseconds: no boxing and no garbage per element. */
export class FloatList {
  #values = new Float32Array(16);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  at(index: number): number {
    return index < this.#length ? this.#values[index]! : Number.NaN;
  }

  push(value: number): void {
    if (this.#length === this.#values.length) {
      const grown = new Float32Array(this.#length + Math.min(Math.max(16, this.#length), 4096));
      grown.set(this.#values);
      this.#values = grown;
    }
    this.#values[this.#length] = value;
    this.#length += 1;
  }

  /** A copy in ascending order. */
  sorted(): Float32Array {
    return this.#values.slice(0, this.#length).sort();
  }
}
