import { OctavoError } from "@octavo/protocol/errors";
import { grammarError, maxRepeat } from "./expression.js";

/** A place in a grammar's text. */
export class Scanner {
  readonly source: string;
  index = 0;
  /** Line of `#lineIndex`, from which lines are counted on. */
  #line = 1;
  #lineIndex = 0;

  constructor(source: string) {
    this.source = source;
  }

  get line(): number {
    if (this.index < this.#lineIndex) {
      this.#line = 1;
      this.#lineIndex = 0;
    }
    for (; this.#lineIndex < this.index; this.#lineIndex += 1)
      if (this.source[this.#lineIndex] === "\n") this.#line += 1;
    return this.#line;
  }

  get isAtEnd(): boolean {
    return this.index >= this.source.length;
  }

  get next(): string {
    return this.source[this.index] ?? "";
  }

  accept(text: string): boolean {
    if (!this.source.startsWith(text, this.index)) return false;
    this.index += text.length;
    return true;
  }

  /** What a sticky expression matches here. */
  match(expression: RegExp): RegExpExecArray | undefined {
    expression.lastIndex = this.index;
    const found = expression.exec(this.source) ?? undefined;
    if (found !== undefined) this.index += found[0].length;
    return found;
  }

  /** Whether a sticky expression matches here. */
  sees(expression: RegExp): boolean {
    expression.lastIndex = this.index;
    return expression.test(this.source);
  }

  codePoint(): number {
    const codePoint = this.source.codePointAt(this.index);
    if (codePoint === undefined) throw this.fail("ends too early");
    this.index += codePoint > 0xffff ? 2 : 1;
    return codePoint;
  }

  fail(what: string): OctavoError {
    return grammarError(this.line, what);
  }

  /** A character of a literal or class, after its backslash. */
  escape(): number {
    const letter = this.next;
    const simple = Object.hasOwn(escapes, letter) ? escapes[letter] : undefined;
    if (simple !== undefined) {
      this.index += 1;
      return simple;
    }
    const hex = this.match(/x([\da-fA-F]{2})|u([\da-fA-F]{4})|u\{([\da-fA-F]{1,6})\}|U([\da-fA-F]{8})/y);
    if (hex !== undefined) {
      const value = Number.parseInt(hex[1] ?? hex[2] ?? hex[3] ?? hex[4]!, 16);
      if (value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff))
        throw this.fail("has an escape that is not a character");
      return value;
    }
    if (/[A-Za-z0-9]/.test(letter) || letter === "")
      throw this.fail(`has the escape \\${letter}, which is not known`);
    return this.codePoint();
  }

  /** `* + ?` or `{m,n}` after an item. */
  bounds(): { readonly min: number; readonly max: number } | undefined {
    if (this.accept("*")) return { min: 0, max: Number.POSITIVE_INFINITY };
    if (this.accept("+")) return { min: 1, max: Number.POSITIVE_INFINITY };
    if (this.accept("?")) return { min: 0, max: 1 };
    const interval = this.match(/\{\s*(\d{0,9})\s*(,?)\s*(\d{0,9})\s*\}/y);
    if (interval === undefined) return undefined;
    const min = Number(interval[1]);
    const max =
      interval[2] === "" ? min : interval[3] === "" ? Number.POSITIVE_INFINITY : Number(interval[3]);
    return this.checkBounds(min, max);
  }

  checkBounds(min: number, max: number): { readonly min: number; readonly max: number } {
    if (max < min) throw this.fail("has a repetition with its bounds reversed");
    if (min > maxRepeat || (max !== Number.POSITIVE_INFINITY && max > maxRepeat))
      throw this.fail(`repeats more than ${maxRepeat} times`);
    return { min, max };
  }
}

const escapes: Readonly<Record<string, number>> = {
  n: 0x0a,
  r: 0x0d,
  t: 0x09,
  f: 0x0c,
  b: 0x08,
  v: 0x0b,
  0: 0,
};
