import type { Tokenizer } from "@octavo/engine";

/** Texts of single tokens for logprobs, cached by id. */
export class TokenTexts {
  readonly #tokenizer: Tokenizer;
  readonly #texts: (string | undefined)[] = [];
  readonly #utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

  constructor(tokenizer: Tokenizer) {
    this.#tokenizer = tokenizer;
  }

  bytes(id: number): Uint8Array {
    return this.#tokenizer.tokenBytes(id);
  }

  /** The token's text; an incomplete character is written as OpenAI does, `bytes:\xe2\x82`, so that different tokens differ. */
  text(id: number): string {
    return (this.#texts[id] ??= this.#read(id));
  }

  /** As `text`, or `token_id:ID` for `return_tokens_as_token_ids`. */
  label(id: number, asIds: boolean): string {
    return asIds ? `token_id:${id}` : this.text(id);
  }

  #read(id: number): string {
    const bytes = this.#tokenizer.tokenBytes(id);
    try {
      return this.#utf8.decode(bytes);
    } catch {
      return `bytes:${Array.from(bytes, (byte) => `\\x${byte.toString(16).padStart(2, "0")}`).join("")}`;
    }
  }
}

/** JSON has no infinities; vLLM writes this for a probability of zero. */
const lowestLogprob = -9999;

export function wireLogprob(logprob: number): number {
  return Number.isFinite(logprob) ? Math.max(logprob, lowestLogprob) : lowestLogprob;
}
