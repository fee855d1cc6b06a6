export const metaspace = "\u2581";

/**
 * SentencePiece-style vocabularies see a whole text as one piece. Where no token has U+2581 after another character,
 * no merge crosses such a place: words merge on their own with equal result, and can be cached.
 */
export function neverCrossesMetaspace(tokens: Iterable<string>): boolean {
  for (const token of tokens) {
    for (let at = token.indexOf(metaspace, 1); at > 0; at = token.indexOf(metaspace, at + 1)) {
      if (token[at - 1] !== metaspace) return false;
    }
  }
  return true;
}

/** Calls with every word of a piece: cut before each run of U+2581. */
export function forEachWord(piece: string, onWord: (word: string) => void): void {
  let start = 0;
  for (let index = piece.indexOf(metaspace, 1); index >= 0; index = piece.indexOf(metaspace, index + 1)) {
    if (piece[index - 1] === metaspace) continue;
    onWord(piece.slice(start, index));
    start = index;
  }
  onWord(start === 0 ? piece : piece.slice(start));
}
