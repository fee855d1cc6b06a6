import { parseJson } from "@octavo/protocol";

/** Beyond what may be taken of a text: what a redaction must see of something that a cut would leave half of. */
const redactionMargin = 8192;

/** Bounds what is captured of one call: characters that may still be taken. */
export class ContentBudget {
  readonly #redact: ((text: string) => string) | undefined;
  #left: number;
  #isCut = false;

  /** @param redact applied to every text before it is cut, tool definitions included */
  constructor(maxCharacters: number, redact?: (text: string) => string) {
    this.#left = maxCharacters;
    this.#redact = redact;
  }

  /** As much of the text as is left; the first cut is marked with an ellipsis. */
  take(text: string): string {
    const isLonger = text.length > this.#left + redactionMargin;
    const ready = this.#redact?.(isLonger ? text.slice(0, this.#left + redactionMargin) : text) ?? text;
    if (ready.length <= this.#left && !isLonger) {
      this.#left -= ready.length;
      return ready;
    }
    const end = Math.min(this.#left, ready.length);
    const kept = ready.slice(0, isPairAt(ready, end - 1) ? end - 1 : end);
    this.#left = 0;
    if (this.#isCut) return kept;
    this.#isCut = true;
    return `${kept}…`;
  }

  /** A value's JSON, redacted, or undefined where it does not fit; then nothing of it is taken. */
  takeJson(value: unknown): unknown {
    const json = JSON.stringify(value) ?? "";
    if (json.length > this.#left) return undefined;
    const redacted = this.#redact === undefined ? { value } : parseJson(this.#redact(json));
    this.#left -= redacted === undefined ? 0 : json.length;
    return redacted?.value;
  }
}

/** Whether one character takes the unit at `index` and the next: a cut between them would leave half of it. */
function isPairAt(text: string, index: number): boolean {
  return (text.codePointAt(index) ?? 0) > 0xffff;
}
