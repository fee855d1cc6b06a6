/** Bounds what is captured of one call: characters that may still be taken. */
export class ContentBudget {
  #left: number;
  #isCut = false;

  constructor(maxCharacters: number) {
    this.#left = maxCharacters;
  }

  /** As much of the text as is left; the first cut is marked with an ellipsis. */
  take(text: string): string {
    if (text.length <= this.#left) {
      this.#left -= text.length;
      return text;
    }
    const kept = text.slice(0, isPairAt(text, this.#left - 1) ? this.#left - 1 : this.#left);
    this.#left = 0;
    if (this.#isCut) return kept;
    this.#isCut = true;
    return `${kept}…`;
  }

  /** Whether a value's JSON fits; takes it when it does. */
  takeJson(value: unknown): boolean {
    const length = JSON.stringify(value)?.length ?? 0;
    if (length > this.#left) return false;
    this.#left -= length;
    return true;
  }
}

/** Whether one character takes the unit at `index` and the next: a cut between them would leave half of it. */
function isPairAt(text: string, index: number): boolean {
  return (text.codePointAt(index) ?? 0) > 0xffff;
}
