import type { TestRandom } from "../../testing/random.js";
import type { Matcher } from "../grammar.js";
import type { GrammarVocabulary } from "../automaton/vocabulary.js";

/** Tokens allowed by a matcher, ascending. */
export function allowedTokens(matcher: Matcher, vocabulary: GrammarVocabulary): number[] {
  const mask = new Uint32Array(Math.ceil(vocabulary.size / 32));
  matcher.fillMask(mask);
  const allowed: number[] = [];
  for (let token = 0; token < vocabulary.size; token += 1)
    if ((mask[token >> 5]! >>> (token & 31)) & 1) allowed.push(token);
  return allowed;
}

/** Tokens that a matcher accepts when each is tried. */
export function acceptedTokens(matcher: Matcher, vocabulary: GrammarVocabulary): number[] {
  const accepted: number[] = [];
  for (let token = 0; token < vocabulary.size; token += 1) {
    if (!matcher.accept(token)) continue;
    accepted.push(token);
    matcher.rollback(1);
  }
  return accepted;
}

export function bytesOfToken(vocabulary: GrammarVocabulary, token: number): Uint8Array {
  return vocabulary.bytes.subarray(vocabulary.starts[token], vocabulary.starts[token + 1]);
}

/** Ends strings, objects and arrays when a walk has gone on for long. */
const closing = ['"', "}", "]", "0", "\\"].map((text) => text.charCodeAt(0));

/**
 * Follows random allowed tokens until the text is complete; after `patience` tokens it prefers those that close what is
 * open. Undefined when it has not come to an end within `maxTokens`.
 */
export function randomWalk(
  matcher: Matcher,
  vocabulary: GrammarVocabulary,
  random: TestRandom,
  { patience = 60, maxTokens = 400 } = {},
): string | undefined {
  const text: Uint8Array[] = [];
  for (let count = 0; count < maxTokens; count += 1) {
    if (matcher.isFinished || (matcher.isComplete && random.next() < 0.3))
      return Buffer.concat(text).toString();
    const allowed = allowedTokens(matcher, vocabulary);
    if (allowed.length === 0) return undefined;
    const closes =
      count < patience
        ? []
        : allowed.filter((token) => closing.includes(bytesOfToken(vocabulary, token)[0]!));
    const choices = closes.length > 0 ? closes : allowed;
    const token = choices[random.below(choices.length)]!;
    if (!matcher.accept(token)) return undefined;
    text.push(bytesOfToken(vocabulary, token));
  }
  return matcher.isComplete ? Buffer.concat(text).toString() : undefined;
}

/** Whether a text, taken byte by byte, is one that the grammar allows. The vocabulary's first 256 tokens are the bytes. */
export function takes(matcher: Matcher, text: string): boolean {
  for (const byte of Buffer.from(text)) if (!matcher.accept(byte)) return false;
  return matcher.isComplete;
}
