import type { Tokenizer } from "@octavo/text/tokenizer/tokenizer";

/**
 * Token sequences to forbid for each word, after vLLM: the word at the start of a text and, if a space changes the first
 * token but not the number of tokens, the word after a space.
 */
export function tokenizeBadWords(words: readonly string[], tokenizer: Tokenizer): Int32Array[] {
  const sequences: Int32Array[] = [];
  for (const word of words) {
    const bare = tokenizer.encode(word.trimStart(), { addSpecialTokens: false });
    if (bare.length > 0) sequences.push(bare);
    const spaced = tokenizer.encode(` ${word.trimStart()}`, { addSpecialTokens: false });
    if (spaced.length > 0 && spaced.length === bare.length && spaced[0] !== bare[0]) sequences.push(spaced);
  }
  return sequences;
}
