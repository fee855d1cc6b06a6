import type { IntList } from "../kv-cache/int-list.js";
import type { TokenIndex } from "./token-index.js";

/** Places looked at: the newest ones. */
export const mostPlaces = 32;

/** The places at which most of a text's last tokens have stood before. Reused: `find` overwrites what it found before. */
export class LongestMatch {
  /** Tokens before each place that are the text's last ones; 0 when there is no place. */
  length = 0;
  numPlaces = 0;
  /** Newest first. */
  readonly places = new Int32Array(mostPlaces);

  /** Looks for up to `most` of the last tokens of `text`. A place with `enough` of them ends the search. */
  find(index: TokenIndex, text: IntList, most: number, enough = Number.POSITIVE_INFINITY): void {
    this.length = 0;
    this.numPlaces = 0;
    let place = index.newestAfter(text);
    for (let count = 0; place !== undefined && count < mostPlaces; count += 1) {
      const length = index.matchLength(place, text, most);
      if (length > this.length) {
        this.length = length;
        this.numPlaces = 0;
      }
      if (length > 0 && length === this.length) {
        this.places[this.numPlaces] = place;
        this.numPlaces += 1;
      }
      if (length >= enough) return;
      place = index.olderThan(place);
    }
  }
}

/** The longer the match, the surer what followed it follows again. */
export function confidenceOf(matchLength: number): number {
  if (matchLength < 3) return 0;
  if (matchLength < 6) return 1;
  return matchLength < 12 ? 2 : 3;
}
