/** Characters that a token of unknown text may stand for: it is a part of one, or at most a few. */
const longestUnknown = 8;

/**
 * Where each token begins in the text that they make together. A token that is part of a character reads as U+FFFD: it
 * gets the offset at which the known text before it ends, and the next known token is looked for from there.
 */
export function alignPieces(text: string, pieces: readonly string[]): number[] {
  let offset = 0;
  let numUnknown = 0;
  return pieces.map((piece) => {
    if (piece.includes("\ufffd") && !text.startsWith(piece, offset)) {
      numUnknown += 1;
      return offset;
    }
    const at = text.indexOf(piece, offset);
    const isNear = at >= 0 && at - offset <= numUnknown * longestUnknown;
    const start = isNear ? at : offset;
    offset = Math.min(text.length, start + piece.length);
    numUnknown = 0;
    return start;
  });
}
