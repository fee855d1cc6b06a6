import { leadingWhitespace, trailingWhitespaceStart } from "./normalizers.js";
import { rustWordCharacters } from "../regex/character-set.js";
import type { AddedTokenSpecification } from "./specification.js";
import { UnitTrie } from "./unit-trie.js";

/**
 * Finds added tokens in text: leftmost, longest, not overlapping, as Hugging Face's AddedVocabulary.
 * Time is linear in the text times the length of the longest token.
 */
export class AddedTokenMatcher {
  readonly #tokens: readonly AddedTokenSpecification[];
  readonly #trie = new UnitTrie();
  readonly #canStart = new Uint8Array(0x10000);
  readonly isEmpty: boolean;

  /** `written`: how each token looks in the text searched. Values of the trie are indices into `tokens`. */
  constructor(
    tokens: readonly AddedTokenSpecification[],
    written: (token: AddedTokenSpecification) => string,
  ) {
    this.#tokens = tokens;
    for (const [index, token] of tokens.entries()) {
      const text = written(token);
      if (text === "") continue;
      this.#trie.set(text, index);
      this.#canStart[text.charCodeAt(0)] = 1;
    }
    this.isEmpty = tokens.length === 0;
  }

  /** Calls `onText` and `onToken` over the whole text in order. */
  split(text: string, onText: (start: number, end: number) => void, onToken: (id: number) => void): void {
    let consumed = 0;
    for (let index = 0; index < text.length;) {
      const match = this.#canStart[text.charCodeAt(index)] === 1 ? this.#longestAt(text, index) : undefined;
      if (match === undefined) {
        index++;
        continue;
      }
      const { token, end: matchEnd } = match;
      const matchStart = index;
      index = matchEnd;
      if (token.singleWord && !standsAlone(text, matchStart, matchEnd)) continue;
      const start = token.stripLeft
        ? Math.max(trailingWhitespaceStart(text, matchStart), consumed)
        : matchStart;
      const end = token.stripRight ? leadingWhitespace(text, matchEnd) : matchEnd;
      if (consumed < start) onText(consumed, start);
      onToken(token.id);
      consumed = end;
    }
    if (consumed < text.length) onText(consumed, text.length);
  }

  #longestAt(text: string, start: number): { token: AddedTokenSpecification; end: number } | undefined {
    let node = 0;
    let best = -1;
    let bestEnd = start;
    for (let index = start; index < text.length;) {
      node = this.#trie.child(node, text.charCodeAt(index++));
      if (node < 0) break;
      const value = this.#trie.value(node);
      if (value >= 0) {
        best = value;
        bestEnd = index;
      }
    }
    return best < 0 ? undefined : { token: this.#tokens[best]!, end: bestEnd };
  }
}

function standsAlone(text: string, start: number, end: number): boolean {
  const after = text.codePointAt(end);
  if (after !== undefined && rustWordCharacters.has(after)) return false;
  if (start === 0) return true;
  const isPair = start > 1 && (text.charCodeAt(start - 1) & 0xfc00) === 0xdc00;
  return !rustWordCharacters.has(text.codePointAt(start - (isPair ? 2 : 1))!);
}
