import type { AnsweredToken } from "../../answers/answer.js";

/** A run of tokens of an answer. */
export interface AnswerPart {
  readonly text: string;
  readonly fromToken: number;
  readonly toToken: number;
}

/** Where each token of a text begins, in UTF-16 units; `exact` when the tokens spell the text. */
export interface TokenOffsets {
  readonly offsets: readonly number[];
  readonly isExact: boolean;
}

/**
 * Where tokens lie in the text of an answer. Tokens that do not spell the text (a server that hides markup, bytes of one
 * character) and answers without tokens are spread evenly over `numTokens`.
 */
export function tokenOffsets(
  text: string,
  tokens: readonly AnsweredToken[] | undefined,
  numTokens: number,
): TokenOffsets {
  if (tokens !== undefined && tokens.length > 0) {
    const offsets: number[] = [];
    let at = 0;
    for (const { text: own } of tokens) {
      offsets.push(at);
      if (text.startsWith(own, at)) at += own.length;
    }
    const spelled = tokens.reduce((sum, { text: own }) => sum + own.length, 0);
    // an end token may be named and not shown
    if (at === text.length && spelled - at <= (tokens.at(-1)?.text.length ?? 0))
      return { offsets, isExact: true };
  }
  const count = Math.max(1, numTokens);
  return {
    offsets: Array.from({ length: count }, (_, index) => Math.floor((index * text.length) / count)),
    isExact: false,
  };
}

/** Parts of at most `partTokens` tokens, none of which crosses an edge. */
export function splitAnswer(
  text: string,
  { offsets }: TokenOffsets,
  partTokens: number,
  edges: readonly number[],
): readonly AnswerPart[] {
  const parts: AnswerPart[] = [];
  let from = 0;
  while (from < offsets.length) {
    const edge = edges.find((one) => one > from) ?? Infinity;
    const to = Math.min(offsets.length, from + partTokens, edge);
    const part = text.slice(offsets[from], offsets[to] ?? text.length);
    if (part !== "") parts.push({ text: part, fromToken: from, toToken: to });
    from = to;
  }
  return parts;
}

/** Index of the token that a character belongs to. */
export function tokenAt({ offsets }: TokenOffsets, character: number): number {
  let [low, high] = [0, offsets.length - 1];
  while (low < high) {
    const middle = (low + high + 1) >>> 1;
    if (offsets[middle]! <= character) low = middle;
    else high = middle - 1;
  }
  return low;
}
