import { OctavoError } from "@octavo/protocol/errors";

/** A growing list of token ids. Throws `context_length_exceeded` when it gets more than `maxLength`. */
export class TokenSink {
  readonly #maxLength: number;
  #ids: Int32Array;
  #length = 0;

  constructor(maxLength = Infinity) {
    this.#maxLength = maxLength;
    this.#ids = new Int32Array(Math.min(64, maxLength));
  }

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
    if (least > this.#maxLength) throw tooManyTokens(least, this.#maxLength);
    const larger = new Int32Array(Math.min(Math.max(least, this.#ids.length * 2), this.#maxLength));
    larger.set(this.#ids.subarray(0, this.#length));
    this.#ids = larger;
  }
}

export function tooManyTokens(least: number, most: number): OctavoError {
  return new OctavoError(
    "context_length_exceeded",
    `The text has at least ${least} tokens; at most ${most} are accepted.`,
  );
}
