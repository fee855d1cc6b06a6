import { OctavoError } from "@octavo/protocol/errors";
import { type CodeSet, codeSet, complement, unite } from "../code-points.js";
import { namedCodeSet } from "./named-sets.js";

/** ECMAScript's regular expressions with the `u` flag, without what no automaton can do. */
export type Regex =
  | { readonly kind: "set"; readonly set: CodeSet }
  | { readonly kind: "sequence"; readonly items: readonly Regex[] }
  | { readonly kind: "choice"; readonly items: readonly Regex[] }
  | { readonly kind: "repeat"; readonly item: Regex; readonly min: number; readonly max: number }
  | { readonly kind: "look"; readonly negative: boolean; readonly item: Regex }
  | { readonly kind: "start" }
  | { readonly kind: "end" };

const maxLength = 20_000;
const maxNesting = 200;
const maxRepeat = 10_000;

/** Throws `invalid_request` with the pattern, the place and what to do. */
export function parseRegex(source: string): Regex {
  if (source.length > maxLength) throw invalid(source, 0, `is longer than ${maxLength} characters`);
  return new RegexParser(source).parse();
}

function invalid(source: string, offset: number, what: string): OctavoError {
  const shown = source.length > 100 ? `${source.slice(0, 97)}...` : source;
  return new OctavoError(
    "invalid_request",
    `The pattern ${JSON.stringify(shown)} ${what} (at offset ${offset}).`,
  );
}

const digits: CodeSet = [0x30, 0x39];
const words: CodeSet = codeSet([
  [0x30, 0x39],
  [0x41, 0x5a],
  [0x5f, 0x5f],
  [0x61, 0x7a],
]);
const lineEnds: CodeSet = codeSet([
  [0x0a, 0x0a],
  [0x0d, 0x0d],
  [0x2028, 0x2029],
]);
const spaces: CodeSet = codeSet([
  [0x09, 0x0d],
  [0x20, 0x20],
  [0xa0, 0xa0],
  [0x1680, 0x1680],
  [0x2000, 0x200a],
  [0x2028, 0x2029],
  [0x202f, 0x202f],
  [0x205f, 0x205f],
  [0x3000, 0x3000],
  [0xfeff, 0xfeff],
]);
const classEscapes: Readonly<Record<string, CodeSet>> = {
  d: digits,
  D: complement(digits),
  w: words,
  W: complement(words),
  s: spaces,
  S: complement(spaces),
};
const controls: Readonly<Record<string, number>> = { n: 0x0a, r: 0x0d, t: 0x09, f: 0x0c, v: 0x0b };
const identity = "^$\\.*+?()[]{}|/-\"'`~!@#%&=:;,<> _";

class RegexParser {
  readonly #source: string;
  #index = 0;
  #nesting = 0;

  constructor(source: string) {
    this.#source = source;
  }

  parse(): Regex {
    const regex = this.#choice();
    if (this.#index < this.#source.length) throw this.#fail("has an unmatched )");
    return regex;
  }

  #fail(what: string): OctavoError {
    return invalid(this.#source, this.#index, what);
  }

  #accept(text: string): boolean {
    if (!this.#source.startsWith(text, this.#index)) return false;
    this.#index += text.length;
    return true;
  }

  #codePoint(): number {
    const codePoint = this.#source.codePointAt(this.#index);
    if (codePoint === undefined) throw this.#fail("ends too early");
    this.#index += codePoint > 0xffff ? 2 : 1;
    return codePoint;
  }

  #choice(): Regex {
    if (++this.#nesting > maxNesting) throw this.#fail(`is nested more than ${maxNesting} deep`);
    const items = [this.#sequence()];
    while (this.#accept("|")) items.push(this.#sequence());
    this.#nesting -= 1;
    return items.length === 1 ? items[0]! : { kind: "choice", items };
  }

  #sequence(): Regex {
    const items: Regex[] = [];
    for (let next = this.#source[this.#index]; next !== undefined; next = this.#source[this.#index]) {
      if (next === "|" || next === ")") break;
      items.push(this.#quantified(this.#atom()));
    }
    return items.length === 1 ? items[0]! : { kind: "sequence", items };
  }

  #quantified(item: Regex): Regex {
    const bounds = this.#bounds();
    if (bounds === undefined) return item;
    if (item.kind === "start" || item.kind === "end" || item.kind === "look")
      throw this.#fail("repeats an assertion");
    // Lazy and greedy repetition match the same texts.
    this.#accept("?");
    if (/[*+?]/.test(this.#source[this.#index] ?? ""))
      throw this.#fail("has a possessive or doubled quantifier");
    return { kind: "repeat", item, ...bounds };
  }

  #bounds(): { min: number; max: number } | undefined {
    if (this.#accept("*")) return { min: 0, max: Number.POSITIVE_INFINITY };
    if (this.#accept("+")) return { min: 1, max: Number.POSITIVE_INFINITY };
    if (this.#accept("?")) return { min: 0, max: 1 };
    const interval = /^\{(\d{1,9})(?:(,)(\d{0,9}))?\}/.exec(
      this.#source.slice(this.#index, this.#index + 24),
    );
    if (interval === null) return undefined;
    const min = Number(interval[1]);
    const max =
      interval[2] === undefined ? min : interval[3] === "" ? Number.POSITIVE_INFINITY : Number(interval[3]);
    if (max < min) throw this.#fail("has a repetition with its bounds reversed");
    if (min > maxRepeat || (max !== Number.POSITIVE_INFINITY && max > maxRepeat))
      throw this.#fail(`repeats more than ${maxRepeat} times`);
    this.#index += interval[0].length;
    return { min, max };
  }

  #atom(): Regex {
    if (this.#accept("(")) return this.#group();
    if (this.#accept("[")) return { kind: "set", set: this.#class() };
    if (this.#accept(".")) return { kind: "set", set: complement(lineEnds) };
    if (this.#accept("^")) return { kind: "start" };
    if (this.#accept("$")) return { kind: "end" };
    if (/[*+?]/.test(this.#source[this.#index]!)) throw this.#fail("has a quantifier with nothing before it");
    if (this.#accept("\\")) {
      if (this.#accept("A")) return { kind: "start" };
      if (this.#accept("Z") || this.#accept("z")) return { kind: "end" };
      const escaped = this.#escape(false);
      return { kind: "set", set: typeof escaped === "number" ? [escaped, escaped] : escaped };
    }
    const codePoint = this.#codePoint();
    return { kind: "set", set: [codePoint, codePoint] };
  }

  #group(): Regex {
    let wrap = (item: Regex): Regex => item;
    if (this.#accept("?")) {
      if (this.#accept("=")) wrap = (item) => ({ kind: "look", negative: false, item });
      else if (this.#accept("!")) wrap = (item) => ({ kind: "look", negative: true, item });
      else if (this.#accept("<=") || this.#accept("<!"))
        throw this.#fail("looks behind, which is not supported");
      else if (!this.#accept(":")) {
        const name = /^P?<[A-Za-z_$][\w$]*>/.exec(this.#source.slice(this.#index, this.#index + 128));
        if (name === null) throw this.#fail("has a group of a kind that is not supported");
        this.#index += name[0].length;
      }
    }
    const item = this.#choice();
    if (!this.#accept(")")) throw this.#fail("has a ( without its )");
    return wrap(item);
  }

  /** What follows a backslash. */
  #escape(inClass: boolean): number | CodeSet {
    const start = this.#index;
    const letter = String.fromCodePoint(this.#codePoint());
    const known = Object.hasOwn(classEscapes, letter) ? classEscapes[letter] : undefined;
    if (known !== undefined) return known;
    const control = Object.hasOwn(controls, letter) ? controls[letter] : undefined;
    if (control !== undefined) return control;
    if (letter === "b" && inClass) return 0x08;
    if (letter === "0" && !/\d/.test(this.#source[this.#index] ?? "")) return 0;
    if (letter === "x" || letter === "u") return this.#hexEscape(letter);
    if (letter === "c" && /[A-Za-z]/.test(this.#source[this.#index] ?? "")) return this.#codePoint() % 32;
    if (letter === "p" || letter === "P") {
      const name = /^\{(\^?)([\w=]{1,60})\}/.exec(this.#source.slice(this.#index, this.#index + 64));
      const set = name === null ? undefined : namedCodeSet(name[2]!);
      if (name === null || set === undefined)
        throw this.#fail(`names a property after \\${letter} that is not known`);
      this.#index += name[0].length;
      return (letter === "P") === (name[1] === "^") ? set : complement(set);
    }
    if (!identity.includes(letter) && letter.codePointAt(0)! < 0x80) {
      this.#index = start;
      const what = /[1-9k]/.test(letter) ? "refers back to a group" : `has the escape \\${letter}`;
      throw this.#fail(`${what}, which is not supported`);
    }
    return letter.codePointAt(0)!;
  }

  #hexEscape(letter: "x" | "u"): number {
    const rest = this.#source.slice(this.#index, this.#index + 12);
    const pair =
      letter === "u" ? /^([dD][89abAB][\da-fA-F]{2})\\u([dD][c-fC-F][\da-fA-F]{2})/.exec(rest) : null;
    if (pair !== null) {
      this.#index += pair[0].length;
      return (
        0x10000 + ((Number.parseInt(pair[1]!, 16) & 0x3ff) << 10) + (Number.parseInt(pair[2]!, 16) & 0x3ff)
      );
    }
    const digitsFound = (
      letter === "x" ? /^([\da-fA-F]{2})/ : /^(?:\{([\da-fA-F]{1,6})\}|([\da-fA-F]{4}))/
    ).exec(rest);
    const value = digitsFound === null ? Number.NaN : Number.parseInt(digitsFound[1] ?? digitsFound[2]!, 16);
    if (digitsFound === null || value > 0x10ffff) throw this.#fail(`has a malformed \\${letter} escape`);
    this.#index += digitsFound[0].length;
    return value;
  }

  #class(): CodeSet {
    const isNegated = this.#accept("^");
    const members: CodeSet[] = [];
    for (;;) {
      if (this.#index >= this.#source.length) throw this.#fail("has a [ without its ]");
      if (this.#accept("]")) break;
      const first = this.#member();
      const hasRange =
        this.#source[this.#index] === "-" && !["]", undefined].includes(this.#source[this.#index + 1]);
      if (!hasRange) {
        members.push(typeof first === "number" ? [first, first] : first);
        continue;
      }
      this.#index += 1;
      const last = this.#member();
      if (typeof first !== "number" || typeof last !== "number") {
        // `[\w-.]`: the dash stands for itself.
        for (const part of [first, 0x2d, last]) members.push(typeof part === "number" ? [part, part] : part);
        continue;
      }
      if (last < first) throw this.#fail("has a class with a range reversed");
      members.push([first, last]);
    }
    const set = unite(...members);
    return isNegated ? complement(set) : set;
  }

  #member(): number | CodeSet {
    return this.#accept("\\") ? this.#escape(true) : this.#codePoint();
  }
}
