import { type Input, isSpace, type Waiting } from "./input.js";

/**
 * The next unit, or a whole tag. A possible beginning of a tag is held until it is decided; tags are longer than one unit, so
 * the length of the result distinguishes the two. No tag may be a prefix of another.
 */
export function* nextPiece(input: Input, tags: readonly string[]): Waiting<string> {
  let held = yield* input.next();
  if (held === "" || !tags.some((tag) => tag.startsWith(held))) return held;
  while (!tags.includes(held)) {
    const unit = yield* input.next();
    held += unit;
    if (unit === "" || !tags.some((tag) => tag.startsWith(held))) {
      input.unread(held.slice(1));
      return held.charAt(0);
    }
  }
  return held;
}

/**
 * Passes on text up to the first of the tags, which is read and returned; undefined at the end of the output. `closer`: a tag
 * of one unit.
 */
export function* untilTag(
  input: Input,
  tags: readonly string[],
  onText: (text: string) => void,
  closer?: string,
): Waiting<string | undefined> {
  const stops = new Set([...tags.map((tag) => tag.charAt(0)), closer ?? ""]);
  for (;;) {
    const run = input.takeRun(stops);
    if (run !== "") onText(run);
    const piece = yield* nextPiece(input, tags);
    if (piece === "") return undefined;
    if (piece.length > 1 || piece === closer) return piece;
    onText(piece);
  }
}

/** As `untilTag`, but returns the text; stops at `limit` units, longer than any name. */
export function* readUntilTag(
  input: Input,
  tags: readonly string[],
  limit: number,
  closer?: string,
): Waiting<{ readonly text: string; readonly tag: string | undefined }> {
  let text = "";
  while (text.length < limit) {
    const piece = yield* nextPiece(input, tags);
    if (piece === "") return { text, tag: undefined };
    if (piece.length > 1 || piece === closer) return { text, tag: piece };
    text += piece;
  }
  return { text, tag: undefined };
}

/** Reads `text` if it comes next; otherwise nothing. */
export function* takeText(input: Input, text: string): Waiting<boolean> {
  let taken = "";
  while (taken.length < text.length) {
    const unit = yield* input.next();
    taken += unit;
    if (unit === "" || !text.startsWith(taken)) {
      input.unread(taken);
      return false;
    }
  }
  return true;
}

/** As `untilTag` where only markup is expected: skips white space and passes text on from its first other unit. */
export function* untilTagPassingSpace(
  input: Input,
  tags: readonly string[],
  onText: (text: string) => void,
): Waiting<string | undefined> {
  let isText = false;
  for (;;) {
    const piece = yield* nextPiece(input, tags);
    if (piece === "") return undefined;
    if (piece.length > 1) return piece;
    isText ||= !isSpace(piece);
    if (isText) onText(piece);
  }
}
