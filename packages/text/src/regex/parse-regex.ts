import { OctavoError } from "@octavo/protocol/errors";
import { anything, CharacterSet } from "./character-set.js";
import { type Dialect, ecmaScript } from "./dialects.js";
import { posixSet } from "./oniguruma-names.js";
import type { Regex, RegexRepeat } from "./syntax-tree.js";

const maxNesting = 200;
const shownLength = 200;

/** Throws the dialect's error with the pattern, the place and what is wrong there. */
export function parseRegex(source: string, dialect: Dialect = ecmaScript): Regex {
  return new RegexParser(source, dialect).parse();
}

/** What `(?imx-imx)` switches, in Oniguruma's dialect. */
interface Options {
  readonly ignoreCase: boolean;
  readonly dotAll: boolean;
  readonly extended: boolean;
}

const looks = [
  { prefix: "=", behind: false, negative: false },
  { prefix: "!", behind: false, negative: true },
  { prefix: "<=", behind: true, negative: false },
  { prefix: "<!", behind: true, negative: true },
] as const;

class RegexParser {
  readonly #source: string;
  readonly #dialect: Dialect;
  #index = 0;
  #nesting = 0;

  constructor(source: string, dialect: Dialect) {
    this.#source = source;
    this.#dialect = dialect;
  }

  parse(): Regex {
    const { maxLength } = this.#dialect;
    if (this.#source.length > maxLength) throw this.#fail(`is longer than ${maxLength} characters`);
    const regex = this.#choice({ ignoreCase: false, dotAll: false, extended: false });
    if (this.#index < this.#source.length) throw this.#fail("has an unmatched )");
    return regex;
  }

  #fail(what: string, at = this.#index): OctavoError {
    const { errorCode, subject } = this.#dialect;
    const shown =
      this.#source.length > shownLength ? `${this.#source.slice(0, shownLength - 3)}...` : this.#source;
    return new OctavoError(errorCode, `${subject} ${JSON.stringify(shown)} ${what} (at offset ${at}).`);
  }

  get #next(): string {
    return this.#source[this.#index] ?? "";
  }

  #accept(text: string): boolean {
    if (!this.#source.startsWith(text, this.#index)) return false;
    this.#index += text.length;
    return true;
  }

  /** Matches an expression that begins with `^` here, within a window of so many characters. */
  #match(expression: RegExp, window = 128): RegExpExecArray | null {
    const found = expression.exec(this.#source.slice(this.#index, this.#index + window));
    if (found !== null) this.#index += found[0].length;
    return found;
  }

  #codePoint(): number {
    const codePoint = this.#source.codePointAt(this.#index);
    if (codePoint === undefined) throw this.#fail("ends too early");
    this.#index += codePoint > 0xffff ? 2 : 1;
    return codePoint;
  }

  #nest(): void {
    if (++this.#nesting > maxNesting) throw this.#fail(`is nested more than ${maxNesting} deep`);
  }

  #choice(options: Options): Regex {
    this.#nest();
    const items = [this.#sequence(options)];
    while (this.#accept("|")) items.push(this.#sequence(options));
    this.#nesting--;
    return items.length === 1 ? items[0]! : { kind: "choice", items };
  }

  #sequence(options: Options): Regex {
    const items: Regex[] = [];
    while (this.#next !== "" && this.#next !== "|" && this.#next !== ")") {
      if (this.#dialect.hasExtensions) {
        if (this.#skipComment(options)) continue;
        const isolated = this.#match(/^\(\?([imx]*)(?:-([imx]*))?\)/, 16);
        if (isolated !== null) {
          // `(?i)` holds to the end of its group and takes the alternatives that follow with it, as in Ruby.
          items.push(this.#choice(switched(options, isolated)));
          break;
        }
      }
      items.push(this.#quantified(this.#atom(options), options));
    }
    return items.length === 1 ? items[0]! : { kind: "sequence", items };
  }

  /** Skips `(?#...)`; in extended mode also white space and `#` to the end of the line. */
  #skipComment(options: Options): boolean {
    if (options.extended && this.#skipExtended()) return true;
    if (!this.#accept("(?#")) return false;
    const end = this.#source.indexOf(")", this.#index);
    if (end < 0) throw this.#fail("has an unfinished comment");
    this.#index = end + 1;
    return true;
  }

  #skipExtended(): boolean {
    if (this.#match(/^\s/, 1) !== null) return true;
    if (!this.#accept("#")) return false;
    const end = this.#source.indexOf("\n", this.#index);
    this.#index = end < 0 ? this.#source.length : end + 1;
    return true;
  }

  #quantified(item: Regex, options: Options): Regex {
    let regex = item;
    for (;;) {
      if (options.extended) while (this.#skipExtended());
      const bounds = this.#bounds();
      if (bounds === undefined) return regex;
      if (regex.kind === "anchor" || regex.kind === "look") throw this.#fail("repeats an assertion");
      const { min, max } = bounds;
      regex = { kind: "repeat", item: regex, min, max, mode: this.#mode(bounds) };
      if (!this.#dialect.hasExtensions) {
        if (/[*+?]/.test(this.#next)) throw this.#fail("has a possessive or doubled quantifier");
        return regex;
      }
    }
  }

  #mode(bounds: Bounds): RegexRepeat["mode"] {
    if (this.#accept("?")) {
      if (this.#dialect.hasExtensions && bounds.isInterval && bounds.min === bounds.max)
        throw this.#fail("has an optional fixed repetition {n}?, which is not supported");
      return "lazy";
    }
    // Oniguruma: `{n,m}+` repeats the repetition; only ?+ *+ ++ are possessive.
    return this.#dialect.hasExtensions && !bounds.isInterval && this.#accept("+") ? "possessive" : "greedy";
  }

  #bounds(): Bounds | undefined {
    if (this.#accept("*")) return { min: 0, max: Infinity, isInterval: false };
    if (this.#accept("+")) return { min: 1, max: Infinity, isInterval: false };
    if (this.#accept("?")) return { min: 0, max: 1, isInterval: false };
    const start = this.#index;
    const interval = this.#match(this.#dialect.interval, 32);
    if (interval === null) return undefined;
    const [, least, comma, most] = interval;
    const min = Number(least);
    const max = !comma ? min : !most ? Infinity : Number(most);
    const { maxRepeat } = this.#dialect;
    if (max < min) throw this.#fail("has a repetition with its bounds reversed", start);
    if (min > maxRepeat || (max !== Infinity && max > maxRepeat))
      throw this.#fail(`repeats more than ${maxRepeat} times`, start);
    return { min, max, isInterval: true };
  }

  #atom(options: Options): Regex {
    const { dot, escapes, lineStart, lineEnd } = this.#dialect;
    if (this.#accept("(")) return this.#group(options);
    if (this.#accept("[")) return { kind: "set", set: this.#class(options) };
    if (this.#accept(".")) return { kind: "set", set: options.dotAll ? anything : dot };
    if (this.#accept("^")) return { kind: "anchor", at: lineStart };
    if (this.#accept("$")) return { kind: "anchor", at: lineEnd };
    if (/[*+?]/.test(this.#next)) throw this.#fail("has a quantifier with nothing before it");
    if (this.#next !== "\\") return { kind: "set", set: literal(this.#codePoint(), options) };
    const meaning = escapes.get(this.#source[this.#index + 1] ?? "");
    if (typeof meaning === "string" || (typeof meaning === "object" && "kind" in meaning)) {
      this.#index += 2;
      return typeof meaning === "string" ? { kind: "anchor", at: meaning } : meaning;
    }
    return { kind: "set", set: setOf(this.#escape(), options) };
  }

  #group(options: Options): Regex {
    let wrap = (item: Regex): Regex => item;
    let inner = options;
    if (this.#accept("?")) {
      const look = looks.find(({ prefix }) => this.#accept(prefix));
      const { hasExtensions, groupName } = this.#dialect;
      const switches = this.#match(hasExtensions ? /^([imx]*)(?:-([imx]*))?:/ : /^():/, 16);
      if (look !== undefined) {
        const { behind, negative } = look;
        if (behind && !hasExtensions) throw this.#fail("looks behind, which is not supported");
        wrap = (item) => ({ kind: "look", behind, negative, item });
      } else if (switches !== null) inner = switched(options, switches);
      else if (hasExtensions && this.#accept(">")) wrap = (item) => ({ kind: "atomic", item });
      else if (this.#match(groupName) === null)
        throw this.#fail("has a group of a kind that is not supported");
    }
    const item = this.#choice(inner);
    if (!this.#accept(")")) throw this.#fail("has a ( without its )");
    return wrap(item);
  }

  /** A backslash and what follows: a single code point or a class of them. */
  #escape(): number | CharacterSet {
    this.#index++;
    const start = this.#index;
    const { escapes, hasExtensions, hexEscapes, isIdentity } = this.#dialect;
    const letter = String.fromCodePoint(this.#codePoint());
    const meaning = escapes.get(letter);
    if (typeof meaning === "number" || meaning instanceof CharacterSet) return meaning;
    if (letter === "p" || letter === "P") return this.#property(letter);
    if (letter === "x" || letter === "u") return this.#hexEscape(hexEscapes[letter], letter);
    if (letter === "0" && hasExtensions) return Number.parseInt(`0${this.#match(/^[0-7]{0,2}/, 2)![0]}`, 8);
    if (letter === "0" && !/\d/.test(this.#next)) return 0;
    if (letter === "c" && !hasExtensions && /[A-Za-z]/.test(this.#next)) return this.#codePoint() % 32;
    if (isIdentity(letter)) return letter.codePointAt(0)!;
    this.#index = start;
    const what = /[1-9k]/.test(letter) ? "refers back to a group" : `has the escape \\${letter}`;
    throw this.#fail(`${what}, which is not supported`);
  }

  #property(letter: "p" | "P"): CharacterSet {
    const { property, named } = this.#dialect;
    const start = this.#index;
    const name = this.#match(property, 64);
    const set = name === null ? undefined : named(name[2]!);
    if (name === null || set === undefined)
      throw this.#fail(`names a property after \\${letter} that is not known`, start);
    return (letter === "P") === (name[1] === "^") ? set : CharacterSet.complement(set);
  }

  #hexEscape(expression: RegExp, letter: "x" | "u"): number {
    const start = this.#index;
    const surrogates = /^([dD][89abAB][\da-fA-F]{2})\\u([dD][c-fC-F][\da-fA-F]{2})/;
    const pair = letter === "u" && !this.#dialect.hasExtensions ? this.#match(surrogates, 12) : null;
    if (pair !== null) {
      const [high, low] = pair.slice(1).map((digits) => Number.parseInt(digits, 16) & 0x3ff);
      return 0x10000 + (high! << 10) + low!;
    }
    const digits = this.#match(expression, 12);
    const value = digits === null ? Number.NaN : Number.parseInt(digits[1] || digits[2]!, 16);
    if (digits === null || value > 0x10ffff) throw this.#fail(`has a malformed \\${letter} escape`, start);
    return value;
  }

  /** The inside of `[...]`; in Oniguruma's dialect with nested classes, `&&` and a first `]` that stands for itself. */
  #class(options: Options): CharacterSet {
    this.#nest();
    const { hasExtensions } = this.#dialect;
    const isNegated = this.#accept("^");
    const intersected: CharacterSet[] = [];
    let members: CharacterSet[] = [];
    for (let isFirst = true; ; isFirst = false) {
      if (this.#next === "") throw this.#fail("has a [ without its ]");
      if (!(isFirst && hasExtensions) && this.#accept("]")) break;
      if (hasExtensions && this.#accept("&&")) {
        intersected.push(CharacterSet.union(members));
        members = [];
      } else members.push(...this.#members(options));
    }
    this.#nesting--;
    const set = CharacterSet.intersection([...intersected, CharacterSet.union(members)]);
    return isNegated ? CharacterSet.complement(set) : set;
  }

  /** A class within a class, or a character or a range of them. */
  #members(options: Options): CharacterSet[] {
    const { hasExtensions } = this.#dialect;
    if (hasExtensions) {
      const posix = this.#match(/^\[:(\^?)(\w+):\]/, 32);
      if (posix !== null) {
        const set = posixSet(posix[2]!);
        if (set === undefined) throw this.#fail(`has the unknown class ${posix[0]}`);
        return [posix[1] === "^" ? CharacterSet.complement(set) : set];
      }
      if (this.#accept("[")) return [this.#class(options)];
    }
    const first = this.#member();
    if (typeof first !== "number" && hasExtensions) return [first];
    const afterDash = this.#source[this.#index + 1];
    const isRange =
      this.#next === "-" &&
      afterDash !== undefined &&
      afterDash !== "]" &&
      !(hasExtensions && afterDash === "[");
    if (!isRange) return [setOf(first, options)];
    this.#index++;
    const last = this.#member();
    // `[\w-.]`: the dash stands for itself.
    if (typeof first !== "number" || typeof last !== "number")
      return [first, 0x2d, last].map((part) => setOf(part, options));
    if (last < first) throw this.#fail("has a class with a range reversed");
    const range = CharacterSet.of([first, last]);
    return [options.ignoreCase ? CharacterSet.ignoringCase(range) : range];
  }

  #member(): number | CharacterSet {
    if (this.#accept("\\b")) return 0x08;
    return this.#next === "\\" ? this.#escape() : this.#codePoint();
  }
}

interface Bounds {
  readonly min: number;
  readonly max: number;
  readonly isInterval: boolean;
}

function setOf(escaped: number | CharacterSet, options: Options): CharacterSet {
  return typeof escaped === "number" ? literal(escaped, options) : escaped;
}

function literal(codePoint: number, options: Options): CharacterSet {
  const set = CharacterSet.of([codePoint, codePoint]);
  return options.ignoreCase ? CharacterSet.ignoringCase(set) : set;
}

function switched(options: Options, [, on = "", off = ""]: readonly string[]): Options {
  const pick = (letter: string, current: boolean): boolean =>
    off.includes(letter) ? false : on.includes(letter) || current;
  return {
    ignoreCase: pick("i", options.ignoreCase),
    dotAll: pick("m", options.dotAll),
    extended: pick("x", options.extended),
  };
}
