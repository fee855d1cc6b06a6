/** Log-probabilities of a row of raw logits. */
export class RowLogprobs {
  readonly #logits: Float32Array;
  readonly #largest: number;
  readonly #logSum: number;

  constructor(logits: Float32Array) {
    this.#logits = logits;
    this.#largest = logits.reduce((most, logit) => Math.max(most, logit), -Infinity);
    this.#logSum = Math.log(logits.reduce((sum, logit) => sum + Math.exp(logit - this.#largest), 0));
  }

  of(token: number): number {
    return Math.fround((this.#logits[token] ?? Number.NaN) - this.#largest - this.#logSum);
  }

  /** 1 for the most likely token; tokens that tie share the best rank. */
  rank(token: number): number {
    const logit = this.#logits[token] ?? Number.NaN;
    return this.#logits.reduce((count, other) => (other > logit ? count + 1 : count), 1);
  }

  /** The `count` most likely, best first, lower ids first among equals. */
  top(count: number): Int32Array {
    const size = Math.min(count, this.#logits.length);
    const ids: number[] = [];
    if (size === 0) return new Int32Array(0);
    for (let id = 0; id < this.#logits.length; id++) {
      const logit = this.#logits[id] ?? Number.NaN;
      if (ids.length === size && !(logit > (this.#logits[ids[size - 1] ?? 0] ?? 0))) continue;
      let [low, high] = [0, ids.length];
      while (low < high) {
        const middle = (low + high) >> 1;
        if ((this.#logits[ids[middle] ?? 0] ?? 0) >= logit) low = middle + 1;
        else high = middle;
      }
      ids.splice(low, 0, id);
      if (ids.length > size) ids.pop();
    }
    return Int32Array.from(ids);
  }
}
