import type { DecodeOptions, Detokenizer, Tokenizer } from "@octavo/text/tokenizer/tokenizer";
import type { TextSpan } from "@octavo/text/parsers/output-events";

/**
 * Counts the tokens whose text lies in spans of the output. It detokenises them again: deltas carry several tokens and hold
 * back text at stop strings, so their texts and tokens do not line up.
 */
export class ReasoningTokens {
  readonly #detokenizer: Detokenizer;
  /** Where each token's text ends. */
  readonly #ends: number[] = [];
  #end = 0;

  constructor(tokenizer: Tokenizer, promptTokens: Int32Array, decoding: DecodeOptions) {
    this.#detokenizer = tokenizer.createDetokenizer({ ...decoding, promptTokens });
  }

  push(tokens: readonly number[]): void {
    for (const token of tokens) {
      this.#end += this.#detokenizer.push(token).length;
      this.#ends.push(this.#end);
    }
  }

  count(spans: readonly TextSpan[]): number {
    return spans.reduce((total, { start, end }) => total + this.#through(end) - this.#through(start), 0);
  }

  /** Tokens whose text ends at or before an offset. */
  #through(offset: number): number {
    let low = 0;
    let high = this.#ends.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#ends[middle] ?? 0) <= offset) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
