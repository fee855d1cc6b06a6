import type { Random } from "@octavo/statistics";

const onsets = ["b", "d", "f", "g", "k", "l", "m", "n", "p", "r", "s", "t", "v", "z"];
const vowels = ["a", "e", "i", "o", "u"];

/** A pronounceable two-syllable word; tokenisers without it in their vocabulary split it the same way each time. */
export function word(random: Random): string {
  return random.pick(onsets) + random.pick(vowels) + random.pick(onsets) + random.pick(vowels);
}

/**
 * Text of about `tokens` tokens for a tokenizer that needs `tokensPerWord` of them for one of these words.
 * The ratio is measured on the server under load from its own usage counts, see `calibrate`.
 */
export function syntheticText(random: Random, tokens: number, tokensPerWord: number): string {
  const count = Math.max(1, Math.round(tokens / tokensPerWord));
  return Array.from({ length: count }, () => word(random)).join(" ");
}
