import { OctavoError } from "@octavo/protocol/errors";
import { CharacterSet, namedSet, posixSet } from "./character-set.js";
import { assertionEscapes, classEscapes, controlEscapes, lineBreak } from "./escapes.js";

export type PatternNode =
  | { readonly kind: "set"; readonly set: CharacterSet }
  | { readonly kind: "sequence"; readonly items: readonly PatternNode[] }
  | { readonly kind: "alternation"; readonly branches: readonly PatternNode[] }
  | {
      readonly kind: "repeat";
      readonly item: PatternNode;
      readonly min: number;
      readonly max: number;
      readonly mode: "greedy" | "lazy" | "possessive";
    }
  | { readonly kind: "atomic"; readonly item: PatternNode }
  | {
      readonly kind: "look";
      readonly behind: boolean;
      readonly negative: boolean;
      readonly item: PatternNode;
    }
  | { readonly kind: "assertion"; readonly at: Assertion };

export type Assertion =
  | "lineStart"
  | "lineEnd"
  | "textStart"
  | "textEnd"
  | "textEndOrLastNewline"
  | "wordBoundary"
  | "notWordBoundary";

interface Flags {
  readonly ignoreCase: boolean;
  readonly dotAll: boolean;
  readonly extended: boolean;
}

const maxPatternLength = 100_000;
const maxNesting = 200;
const maxRepeatCount = 100_000;

/**
 * Parses a regular expression in Oniguruma's syntax (the engine behind Hugging Face's `tokenizers`), as far as
 * tokenizers use it: no back-references, subexpression calls, conditionals or absent operators.
 * Groups capture nothing. Throws `artifact_unsupported` with the pattern and the place.
 */
export function parsePattern(source: string): PatternNode {
  if (source.length > maxPatternLength) {
    throw new OctavoError(
      "artifact_unsupported",
      `A tokenizer pattern of ${source.length} characters is too long; at most ${maxPatternLength} are accepted.`,
    );
  }
  const parser = new PatternParser(source);
  return parser.parse();
}

const newlineSet = CharacterSet.range(0x0a, 0x0a);
const notNewline = CharacterSet.complement(newlineSet);
const anything = CharacterSet.range(0, 0x10ffff);

class PatternParser {
  readonly #source: string;
  #index = 0;
  #nesting = 0;

  constructor(source: string) {
    this.#source = source;
  }

  parse(): PatternNode {
    const node = this.#alternation({ ignoreCase: false, dotAll: false, extended: false });
    if (this.#index < this.#source.length) throw this.#unsupported("an unmatched )");
    return node;
  }

  #unsupported(what: string): OctavoError {
    return new OctavoError(
      "artifact_unsupported",
      `The tokenizer's pattern ${JSON.stringify(this.#source)} has ${what} at offset ${this.#index}, which is not supported.`,
    );
  }

  #peek(): string {
    return this.#source[this.#index] ?? "";
  }

  #accept(text: string): boolean {
    if (!this.#source.startsWith(text, this.#index)) return false;
    this.#index += text.length;
    return true;
  }

  #codePoint(): number {
    const codePoint = this.#source.codePointAt(this.#index);
    if (codePoint === undefined) throw this.#unsupported("an unexpected end");
    this.#index += codePoint > 0xffff ? 2 : 1;
    return codePoint;
  }

  #alternation(flags: Flags): PatternNode {
    if (++this.#nesting > maxNesting) throw this.#unsupported("too deep nesting");
    const branches = [this.#sequence(flags)];
    while (this.#accept("|")) branches.push(this.#sequence(flags));
    this.#nesting--;
    return branches.length === 1 ? branches[0]! : { kind: "alternation", branches };
  }

  #sequence(flags: Flags): PatternNode {
    const items: PatternNode[] = [];
    while (this.#index < this.#source.length) {
      const next = this.#peek();
      if (next === "|" || next === ")") break;
      if (flags.extended && this.#skipExtended()) continue;
      if (this.#accept("(?#")) {
        const end = this.#source.indexOf(")", this.#index);
        if (end < 0) throw this.#unsupported("an unfinished comment");
        this.#index = end + 1;
        continue;
      }
      const isolated = this.#optionsToGroupEnd(flags);
      if (isolated !== undefined) {
        items.push(isolated);
        break;
      }
      items.push(this.#quantified(this.#atom(flags), flags));
    }
    return items.length === 1 ? items[0]! : { kind: "sequence", items };
  }

  #skipExtended(): boolean {
    if (/\s/.test(this.#peek())) {
      this.#index++;
      return true;
    }
    if (this.#peek() !== "#") return false;
    const end = this.#source.indexOf("\n", this.#index);
    this.#index = end < 0 ? this.#source.length : end + 1;
    return true;
  }

  /** `(?i)` holds to the end of its group and takes the alternatives that follow with it, as in Ruby. */
  #optionsToGroupEnd(flags: Flags): PatternNode | undefined {
    const options = /^\(\?([imx]*)(?:-([imx]*))?\)/.exec(this.#source.slice(this.#index, this.#index + 16));
    if (options === null) return undefined;
    this.#index += options[0].length;
    return this.#alternation(withOptions(flags, options[1] ?? "", options[2] ?? ""));
  }

  #quantified(item: PatternNode, flags: Flags): PatternNode {
    let node = item;
    for (;;) {
      if (flags.extended) while (this.#index < this.#source.length && this.#skipExtended());
      const bounds = this.#bounds();
      if (bounds === undefined) return node;
      if (node.kind === "assertion" || node.kind === "look")
        throw this.#unsupported("a quantified assertion");
      // `{n,m}+` repeats the repetition: only ?+ *+ ++ are possessive in this syntax
      let mode: "greedy" | "lazy" | "possessive" = "greedy";
      if (bounds.interval) {
        if (this.#peek() === "?") {
          if (bounds.min === bounds.max) throw this.#unsupported("an optional fixed repetition {n}?");
          this.#index++;
          mode = "lazy";
        }
      } else if (this.#accept("?")) mode = "lazy";
      else if (this.#accept("+")) mode = "possessive";
      node = { kind: "repeat", item: node, min: bounds.min, max: bounds.max, mode };
    }
  }

  #bounds(): { min: number; max: number; interval: boolean } | undefined {
    if (this.#accept("*")) return { min: 0, max: Infinity, interval: false };
    if (this.#accept("+")) return { min: 1, max: Infinity, interval: false };
    if (this.#accept("?")) return { min: 0, max: 1, interval: false };
    const interval = /^\{(\d*)(,?)(\d*)\}/.exec(this.#source.slice(this.#index, this.#index + 32));
    if (interval === null || (interval[1] === "" && interval[3] === "")) return undefined;
    this.#index += interval[0].length;
    const min = interval[1] === "" ? 0 : Number(interval[1]);
    const max = interval[2] === "" ? min : interval[3] === "" ? Infinity : Number(interval[3]);
    if (min > max || min > maxRepeatCount || (max !== Infinity && max > maxRepeatCount))
      throw this.#unsupported("a repetition out of bounds");
    return { min, max, interval: true };
  }

  #atom(flags: Flags): PatternNode {
    const next = this.#peek();
    if (next === "(") return this.#group(flags);
    if (next === "[") return { kind: "set", set: this.#bracket(flags) };
    if (this.#accept(".")) return { kind: "set", set: flags.dotAll ? anything : notNewline };
    if (this.#accept("^")) return { kind: "assertion", at: "lineStart" };
    if (this.#accept("$")) return { kind: "assertion", at: "lineEnd" };
    if (next === "*" || next === "+" || next === "?")
      throw this.#unsupported("a quantifier with nothing to repeat");
    if (next === "\\") {
      const escaped = this.#source[this.#index + 1] ?? "";
      const assertion = Object.hasOwn(assertionEscapes, escaped) ? assertionEscapes[escaped] : undefined;
      if (assertion !== undefined) {
        this.#index += 2;
        return { kind: "assertion", at: assertion };
      }
      if (this.#accept("\\R")) return lineBreak;
      const set = this.#escape();
      return { kind: "set", set: typeof set === "number" ? literal(set, flags) : set };
    }
    return { kind: "set", set: literal(this.#codePoint(), flags) };
  }

  #group(flags: Flags): PatternNode {
    this.#index++;
    let wrap = (item: PatternNode): PatternNode => item;
    let inner = flags;
    if (this.#accept("?")) {
      const options = /^([imx]*)(?:-([imx]*))?:/.exec(this.#source.slice(this.#index, this.#index + 16));
      const name = /^<[A-Za-z_]\w*>/.exec(this.#source.slice(this.#index, this.#index + 128));
      if (options !== null) {
        this.#index += options[0].length;
        inner = withOptions(flags, options[1] ?? "", options[2] ?? "");
      } else if (this.#accept("=")) wrap = (item) => ({ kind: "look", behind: false, negative: false, item });
      else if (this.#accept("!")) wrap = (item) => ({ kind: "look", behind: false, negative: true, item });
      else if (this.#accept("<=")) wrap = (item) => ({ kind: "look", behind: true, negative: false, item });
      else if (this.#accept("<!")) wrap = (item) => ({ kind: "look", behind: true, negative: true, item });
      else if (this.#accept(">")) wrap = (item) => ({ kind: "atomic", item });
      else if (name !== null) this.#index += name[0].length;
      else throw this.#unsupported(`the group (?${this.#peek()}`);
    }
    const item = this.#alternation(inner);
    if (!this.#accept(")")) throw this.#unsupported("an unfinished group");
    return wrap(item);
  }

  /** A backslash and what follows: a single code point or a class of them. */
  #escape(): number | CharacterSet {
    this.#index++;
    const start = this.#index;
    const letter = String.fromCodePoint(this.#codePoint());
    const known = Object.hasOwn(classEscapes, letter) ? classEscapes[letter] : undefined;
    if (known !== undefined) return known;
    const control = Object.hasOwn(controlEscapes, letter) ? controlEscapes[letter] : undefined;
    if (control !== undefined) return control;
    if (letter === "p" || letter === "P") {
      const property = /^\{(\^?)([^}]+)\}/.exec(this.#source.slice(this.#index, this.#index + 64));
      const set = property === null ? undefined : namedSet(property[2]!);
      if (property === null || set === undefined)
        throw this.#unsupported(`the property \\${letter}${property?.[0] ?? ""}`);
      this.#index += property[0].length;
      return (letter === "P") === (property[1] === "^") ? set : CharacterSet.complement(set);
    }
    if (letter === "x" || letter === "u") {
      const pattern =
        letter === "x"
          ? /^(?:\{([0-9a-fA-F]{1,8})\}|([0-9a-fA-F]{1,2}))/
          : /^(?:\{([0-9a-fA-F]{1,8})\}|([0-9a-fA-F]{4}))/;
      const digits = pattern.exec(this.#source.slice(this.#index, this.#index + 12));
      const value = digits === null ? NaN : Number.parseInt(digits[1] ?? digits[2]!, 16);
      if (digits === null || value > 0x10ffff) throw this.#unsupported("a malformed code point escape");
      this.#index += digits[0].length;
      return value;
    }
    if (letter === "0") {
      const digits = /^[0-7]{0,2}/.exec(this.#source.slice(this.#index, this.#index + 2))![0];
      this.#index += digits.length;
      return digits === "" ? 0 : Number.parseInt(digits, 8);
    }
    if (/[A-Za-z0-9]/.test(letter)) {
      this.#index = start;
      throw this.#unsupported(`the escape \\${letter}`);
    }
    return letter.codePointAt(0)!;
  }

  /** `[...]` with ranges, nested classes, POSIX names, negation and `&&`. */
  #bracket(flags: Flags): CharacterSet {
    if (++this.#nesting > maxNesting) throw this.#unsupported("too deep nesting");
    this.#index++;
    const negated = this.#accept("^");
    const intersected: CharacterSet[] = [];
    let members: CharacterSet[] = [];
    const close = (): void => {
      intersected.push(members.length === 0 ? new CharacterSet(() => false) : CharacterSet.union(members));
      members = [];
    };
    for (let first = true; ; first = false) {
      if (this.#index >= this.#source.length) throw this.#unsupported("an unfinished character class");
      if (this.#peek() === "]" && !first) break;
      if (this.#accept("&&")) {
        close();
        continue;
      }
      const posix = /^\[:(\^?)(\w+):\]/.exec(this.#source.slice(this.#index, this.#index + 32));
      if (posix !== null) {
        const set = posixSet(posix[2]!);
        if (set === undefined) throw this.#unsupported(`the class ${posix[0]}`);
        this.#index += posix[0].length;
        members.push(posix[1] === "^" ? CharacterSet.complement(set) : set);
      } else if (this.#peek() === "[") {
        members.push(this.#bracket(flags));
      } else {
        members.push(this.#member(flags));
      }
    }
    this.#index++;
    this.#nesting--;
    close();
    const set = CharacterSet.intersection(intersected);
    return negated ? CharacterSet.complement(set) : set;
  }

  #member(flags: Flags): CharacterSet {
    const first = this.#peek() === "\\" ? this.#classEscape() : this.#codePoint();
    if (typeof first !== "number") return first;
    const isRange =
      this.#peek() === "-" && this.#source[this.#index + 1] !== "]" && this.#index + 1 < this.#source.length;
    if (!isRange) return literal(first, flags);
    const dash = this.#index++;
    if (this.#peek() === "[") {
      this.#index = dash;
      return literal(first, flags);
    }
    const last = this.#peek() === "\\" ? this.#classEscape() : this.#codePoint();
    if (typeof last !== "number") {
      // `a-\s`: the dash stands for itself
      return CharacterSet.union([literal(first, flags), literal(0x2d, flags), last]);
    }
    if (last < first) throw this.#unsupported("a reversed range");
    const range = CharacterSet.range(first, last);
    return flags.ignoreCase ? CharacterSet.ignoringCase(range) : range;
  }

  #classEscape(): number | CharacterSet {
    if (this.#accept("\\b")) return 0x08;
    return this.#escape();
  }
}

function literal(codePoint: number, flags: Flags): CharacterSet {
  const set = CharacterSet.range(codePoint, codePoint);
  return flags.ignoreCase ? CharacterSet.ignoringCase(set) : set;
}

function withOptions(flags: Flags, on: string, off: string): Flags {
  const pick = (letter: string, current: boolean): boolean =>
    off.includes(letter) ? false : on.includes(letter) || current;
  return {
    ignoreCase: pick("i", flags.ignoreCase),
    dotAll: pick("m", flags.dotAll),
    extended: pick("x", flags.extended),
  };
}
