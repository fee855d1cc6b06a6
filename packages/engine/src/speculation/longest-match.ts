import type { IntList } from "../kv-cache/int-list.js";
import type { TokenIndex } from "./token-index.js";

/** Occurrences examined, newest first. */
export const maxOccurrences = 32;

/** The earlier occurrences of the longest suffix of a text. Reused: each `find` overwrites the last result. */
export class LongestMatch {
  /** Tokens of the suffix; 0 when it does not occur. */
  length = 0;
  numOccurrences = 0;
  /** Positions of the tokens that followed, newest first. */
  readonly occurrences = new Int32Array(maxOccurrences);

  /** Finds the longest suffix of `text` with at most `maxLength` tokens. An occurrence of `enough` tokens ends the search. */
  find(index: TokenIndex, text: IntList, maxLength: number, enough = Number.POSITIVE_INFINITY): void {
    this.length = 0;
    this.numOccurrences = 0;
    let occurrence = index.newestAfter(text);
    for (let count = 0; occurrence !== undefined && count < maxOccurrences; count += 1) {
      const length = index.matchLength(occurrence, text, maxLength);
      if (length > this.length) {
        this.length = length;
        this.numOccurrences = 0;
      }
      if (length > 0 && length === this.length) {
        this.occurrences[this.numOccurrences] = occurrence;
        this.numOccurrences += 1;
      }
      if (length >= enough) return;
      occurrence = index.olderThan(occurrence);
    }
  }
}

/** Confidence class of a match: the longer it is, the more likely it continues as before. */
export function confidenceOf(matchLength: number): number {
  if (matchLength < 3) return 0;
  if (matchLength < 6) return 1;
  return matchLength < 12 ? 2 : 3;
}
