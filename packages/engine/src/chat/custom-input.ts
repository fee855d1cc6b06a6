import { inputName } from "./custom-tools.js";

const opening = ["{", `"${inputName}"`, ":", '"'];
const space = /\s*/y;
/** Text without escapes, one whole escape, or the beginning of one that the text ends in. */
const piece = /[^"\\]+|\\(?:u[0-9a-fA-F]{4}|["\\/bfnrt])|\\(?:u[0-9a-fA-F]{0,3})?$/y;

/**
 * The text of a custom tool's call, decoded as its arguments come: `{"input": "..."}`. Arguments of another shape are
 * handed on as the model wrote them.
 */
export class CustomInput {
  #state: "before" | "inside" | "after" | "as written" = "before";
  /** What was read and not handed on. */
  #held = "";
  /** Half of a surrogate pair. */
  #half = "";

  push(text: string): string {
    this.#held += text;
    if (this.#state === "before") this.#state = this.#open();
    if (this.#state === "inside") return this.#decode();
    return this.#state === "as written" ? this.#takeHeld() : "";
  }

  /** The rest, and why the arguments were not one text. */
  finish(): { readonly text: string; readonly problem?: string } {
    const problem = `the call has no text ${JSON.stringify(inputName)}; its arguments are given as the model wrote them`;
    if (this.#state === "as written") return { text: "", problem };
    if (this.#state === "before") return { text: this.#takeHeld(), problem };
    if (this.#state === "inside")
      return { text: this.#half + this.#takeHeld(), problem: "the text is not complete" };
    if (/^\s*\}\s*$/.test(this.#held)) return { text: this.#half };
    return { text: this.#half, problem: `the call has more than the text ${JSON.stringify(inputName)}` };
  }

  /** Reads up to the beginning of the text. */
  #open(): "before" | "inside" | "as written" {
    let at = 0;
    for (const token of opening) {
      space.lastIndex = at;
      at += space.exec(this.#held)?.[0].length ?? 0;
      const found = this.#held.slice(at, at + token.length);
      if (!token.startsWith(found)) return "as written";
      if (found.length < token.length) return "before";
      at += token.length;
    }
    this.#held = this.#held.slice(at);
    return "inside";
  }

  #decode(): string {
    let text = this.#half;
    let at = 0;
    while (at < this.#held.length && this.#held[at] !== '"') {
      piece.lastIndex = at;
      // an escape that JSON does not have stands for itself
      const found = piece.exec(this.#held)?.[0] ?? "\\";
      const isEscape = found.startsWith("\\");
      if (isEscape && at + found.length === this.#held.length && !isWhole(found)) break;
      text += isEscape && isWhole(found) ? (JSON.parse(`"${found}"`) as string) : found;
      at += found.length;
    }
    if (this.#held[at] === '"') {
      this.#state = "after";
      at += 1;
    }
    this.#held = this.#held.slice(at);
    const last = text.charCodeAt(text.length - 1);
    const isHalf = this.#state === "inside" && last >= 0xd800 && last < 0xdc00;
    this.#half = isHalf ? text.slice(-1) : "";
    return isHalf ? text.slice(0, -1) : text;
  }

  #takeHeld(): string {
    const held = this.#held;
    this.#held = "";
    return held;
  }
}

function isWhole(escape: string): boolean {
  return escape.length === (escape[1] === "u" ? 6 : 2);
}
