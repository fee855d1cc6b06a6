import { OctavoError } from "@octavo/protocol";

/** No character follows: unlike `$`, the same in every mode. */
const jsEnd = "(?![\\s\\S])";
const never = "(?!)";

interface Item {
  /** As it stands in the source, without its quantifier. */
  readonly source: string;
  readonly quantifier: string;
  readonly max: number;
  /** How far the item can be matched when the text ends within it; undefined where it looks back or takes nothing. */
  readonly partial: ((end: string) => string) | undefined;
}

/**
 * The source of a pattern that matches wherever `source` has begun to match and needs more text to be decided: from there to
 * the end of the text. With it, a text that grows can be searched without waiting: what begins before the first such place is
 * found or not, whatever follows. `end` is what the dialect writes for the end of a text.
 *
 * Reads JavaScript's syntax of patterns that compile, without back-references.
 * @throws OctavoError `invalid_option` for a construct that it does not know
 */
export function partialPattern(source: string, end = jsEnd): string {
  const reader = new PatternReader(source);
  const partial = reader.choice();
  reader.expectEnd();
  return partial(end);
}

class PatternReader {
  readonly #source: string;
  #at = 0;

  constructor(source: string) {
    this.#source = source;
  }

  expectEnd(): void {
    if (this.#at < this.#source.length) throw this.#unknown();
  }

  #unknown(): OctavoError {
    return new OctavoError(
      "invalid_option",
      `The pattern ${JSON.stringify(this.#source.slice(0, 200))} cannot be followed in a stream (at offset ${this.#at}).`,
    );
  }

  choice(): (end: string) => string {
    const branches = [this.#sequence()];
    while (this.#source[this.#at] === "|") {
      this.#at++;
      branches.push(this.#sequence());
    }
    return (end) => `(?:${branches.map((branch) => branch(end)).join("|")})`;
  }

  #sequence(): (end: string) => string {
    const items: Item[] = [];
    while (this.#at < this.#source.length && !"|)".includes(this.#source[this.#at]!))
      items.push(this.#item());
    return (end) => {
      // an empty branch is decided at once
      let partial = never;
      for (const item of items.toReversed()) {
        const here = item.partial?.(end);
        const rest = partial === never ? undefined : item.source + item.quantifier + partial;
        partial =
          here === undefined
            ? (rest ?? never)
            : rest === undefined
              ? here
              : `(?:${repeated(item)}${here}|${rest})`;
        if (rest === undefined && here !== undefined) partial = `(?:${repeated(item)}${here})`;
      }
      return partial;
    };
  }

  #item(): Item {
    const start = this.#at;
    const partial = this.#atom();
    const source = this.#source.slice(start, this.#at);
    const quantifier = /^(?:[*+?]|\{\d+(?:,\d*)?\})\??/.exec(this.#source.slice(this.#at))?.[0] ?? "";
    this.#at += quantifier.length;
    return { source, quantifier, max: mostRepeats(quantifier), partial };
  }

  /** Reads an atom; the text may end within it, or before it. */
  #atom(): Item["partial"] {
    const rest = this.#source.slice(this.#at);
    const atEnd = (end: string): string => end;
    if (rest.startsWith("(")) return this.#group();
    if (rest.startsWith("[")) {
      const set = /^\[\^?(?:\\[\s\S]|[^\]\\])*\]/.exec(rest)?.[0];
      if (set === undefined) throw this.#unknown();
      this.#at += set.length;
      return atEnd;
    }
    if (rest.startsWith("\\")) {
      const escape = /^\\(?:[pP]\{[^}]*\}|u\{[^}]*\}|u[\da-fA-F]{4}|x[\da-fA-F]{2}|c[A-Za-z]|[^1-9k])/.exec(
        rest,
      )?.[0];
      if (escape === undefined) throw this.#unknown();
      this.#at += escape.length;
      // at the end, a boundary depends on the next character, as a character does
      return atEnd;
    }
    if (/^[*+?{]/.test(rest)) throw this.#unknown();
    this.#at += rest.codePointAt(0)! > 0xffff ? 2 : 1;
    // the beginning of a line is known from what is before it
    return rest.startsWith("^") ? undefined : atEnd;
  }

  #group(): Item["partial"] {
    const head = /^\((?:\?(?:<?[=!]|:|<[A-Za-z_$][\w$]*>))?/.exec(this.#source.slice(this.#at))![0];
    if (head === "(" && this.#source[this.#at + 1] === "?") throw this.#unknown();
    this.#at += head.length;
    const inner = this.choice();
    if (this.#source[this.#at] !== ")") throw this.#unknown();
    this.#at++;
    return head.startsWith("(?<=") || head.startsWith("(?<!") ? undefined : inner;
  }
}

/** As often as the item can have matched before it is matched in part. */
function repeated({ source, max }: Item): string {
  if (max <= 1) return "";
  return max === Infinity ? `${source}*` : `${source}{0,${max - 1}}`;
}

function mostRepeats(quantifier: string): number {
  const most = /^(?:([*+])|(\?)|\{(\d+)(?:(,)(\d*))?\})/.exec(quantifier);
  if (most === null) return 1;
  const [, unbounded, optional, least, comma, limit] = most;
  if (unbounded !== undefined || (comma !== undefined && limit === "")) return Infinity;
  if (optional !== undefined) return 1;
  return Number(limit ?? least);
}
