import type { Detokenizer, TokenLogprob, Tokenizer } from "@octavo/engine";
import type { ChatLogprobs, ChatTopLogprob, CompletionLogprobs, PromptLogprobs } from "@octavo/protocol";
import { type TokenTexts, wireLogprob } from "./token-text.js";

export function chatLogprobs(
  entries: readonly TokenLogprob[],
  texts: TokenTexts,
  asIds: boolean,
): ChatLogprobs {
  const one = (token: number, logprob: number): ChatTopLogprob => ({
    token: texts.label(token, asIds),
    logprob: wireLogprob(logprob),
    bytes: Array.from(texts.bytes(token)),
  });
  return {
    content: entries.map((entry) => ({
      ...one(entry.token, entry.logprob),
      top_logprobs: entry.top.map(({ token, logprob }) => one(token, logprob)),
    })),
  };
}

export function promptLogprobs(
  entries: readonly (TokenLogprob | undefined)[],
  texts: TokenTexts,
): PromptLogprobs {
  return entries.map((entry) => {
    if (entry === undefined) return null;
    const alternatives = entry.top.map(({ token, logprob }, index) => ({ token, logprob, rank: index + 1 }));
    const all = [
      { token: entry.token, logprob: entry.logprob, rank: entry.rank },
      ...alternatives.filter(({ token }) => token !== entry.token),
    ];
    return Object.fromEntries(
      all.map(({ token, logprob, rank }) => [
        String(token),
        { logprob: wireLogprob(logprob), rank, decoded_token: texts.text(token) },
      ]),
    );
  });
}

/**
 * The legacy logprobs of one choice, built as its tokens come. Offsets count code points from the start of the choice's text, since
 * Python clients slice by them; the tokens of one character share its offset.
 */
export class CompletionLogprobsBuilder {
  readonly #texts: TokenTexts;
  readonly #asIds: boolean;
  readonly #detokenizer: Detokenizer;
  #offset = 0;

  constructor(
    tokenizer: Tokenizer,
    texts: TokenTexts,
    asIds: boolean,
    options: { readonly skipSpecialTokens: boolean; readonly promptTokens?: Int32Array },
  ) {
    this.#texts = texts;
    this.#asIds = asIds;
    this.#detokenizer = tokenizer.createDetokenizer(options);
  }

  /** `tokens` and `entries` run in parallel; the first token of an echoed prompt has no entry. */
  append(tokens: ArrayLike<number>, entries: readonly (TokenLogprob | undefined)[]): CompletionLogprobs {
    const piece = {
      tokens: [] as string[],
      token_logprobs: [] as (number | null)[],
      top_logprobs: [] as (Record<string, number> | null)[],
      text_offset: [] as number[],
    };
    for (let i = 0; i < tokens.length; i++) {
      const token = tokens[i] ?? 0;
      const entry = entries[i];
      piece.tokens.push(this.#texts.label(token, this.#asIds));
      piece.token_logprobs.push(entry === undefined ? null : wireLogprob(entry.logprob));
      piece.top_logprobs.push(entry === undefined ? null : this.#alternatives(entry));
      piece.text_offset.push(this.#offset);
      this.#offset += countCodePoints(this.#detokenizer.push(token));
    }
    return piece;
  }

  /** The chosen token is always among its alternatives, so there may be one more than asked for. */
  #alternatives(entry: TokenLogprob): Record<string, number> {
    const pairs = entry.top.map(
      ({ token, logprob }) => [this.#texts.label(token, this.#asIds), wireLogprob(logprob)] as const,
    );
    return Object.fromEntries([
      ...pairs,
      [this.#texts.label(entry.token, this.#asIds), wireLogprob(entry.logprob)],
    ]);
  }
}

function countCodePoints(text: string): number {
  let count = 0;
  for (let i = 0; i < text.length; i++) {
    const isTrailing =
      (text.charCodeAt(i) & 0xfc00) === 0xdc00 && i > 0 && (text.charCodeAt(i - 1) & 0xfc00) === 0xd800;
    if (!isTrailing) count++;
  }
  return count;
}
