import { tokenAt, type TokenOffsets } from "./split-answer.js";

/** A word of the reference, and where in the answer it is, or should have been. */
export interface ExpectedWord {
  readonly token: number;
  readonly isThere: boolean;
}

const mostWords = 6_000;

/**
 * Which words of a reference an answer has, in its order: a longest common subsequence of words. A word that is missing
 * stands where the last one before it was found. Undefined for texts too long to compare.
 */
export function agreementWith(
  reference: string,
  text: string,
  offsets: TokenOffsets,
): readonly ExpectedWord[] | undefined {
  const expected = wordsOf(reference);
  const given = wordsOf(text);
  if (expected.length > mostWords || given.length > mostWords) return undefined;
  const columns = given.length + 1;
  // lengths of common subsequences of the rest after each pair of positions
  const lengths = new Uint16Array((expected.length + 1) * columns);
  for (let i = expected.length - 1; i >= 0; i--) {
    for (let j = given.length - 1; j >= 0; j--) {
      const at = i * columns + j;
      lengths[at] =
        expected[i]!.text === given[j]!.text
          ? lengths[at + columns + 1]! + 1
          : Math.max(lengths[at + columns]!, lengths[at + 1]!);
    }
  }
  const words: ExpectedWord[] = [];
  let j = 0;
  let token = 0;
  for (let i = 0; i < expected.length; i++) {
    while (j < given.length && expected[i]!.text !== given[j]!.text) {
      const at = i * columns + j;
      if (lengths[at + columns]! >= lengths[at + 1]!) break;
      j++;
    }
    const isThere = j < given.length && expected[i]!.text === given[j]!.text;
    if (isThere) {
      token = tokenAt(offsets, given[j]!.at);
      j++;
    }
    words.push({ token, isThere });
  }
  return words;
}

function wordsOf(text: string): readonly { readonly text: string; readonly at: number }[] {
  return Array.from(text.matchAll(/[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu), (match) => ({
    text: match[0],
    at: match.index,
  }));
}
