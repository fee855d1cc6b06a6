/** A call with literal arguments, as Python writes it. */
interface PythonCall {
  readonly name: string;
  readonly positional: readonly unknown[];
  readonly named: Readonly<Record<string, unknown>>;
}

const maxDepth = 32;
const escapes: Readonly<Record<string, string>> = {
  n: "\n",
  t: "\t",
  r: "\r",
  "\\": "\\",
  "'": "'",
  '"': '"',
  "\n": "",
};

/**
 * Reads `name(1, key='text', other=[True, None])`: literals only, nothing is ever evaluated. Tuples become lists.
 * @returns undefined for anything else
 */
export function parsePythonCall(text: string): PythonCall | undefined {
  const reader = new LiteralReader(text);
  try {
    return reader.call();
  } catch (error) {
    if (error instanceof NotLiteral) return undefined;
    throw error;
  }
}

class NotLiteral extends SyntaxError {}

class LiteralReader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  call(): PythonCall {
    const name = this.#match(/[A-Za-z_][\w.]*/y);
    this.#expect("(");
    const positional: unknown[] = [];
    const named = new Map<string, unknown>();
    while (!this.#take(")")) {
      const key = this.#tryMatch(/([A-Za-z_]\w*)\s*=(?!=)/y);
      if (key === undefined) positional.push(this.#value(0));
      else named.set(key, this.#value(0));
      if (!this.#take(",")) {
        this.#expect(")");
        break;
      }
    }
    this.#space();
    if (this.#at !== this.#text.length) throw new NotLiteral("text after the call");
    return { name, positional, named: Object.fromEntries(named) };
  }

  #value(depth: number): unknown {
    if (depth > maxDepth) throw new NotLiteral("too deep");
    this.#space();
    const next = this.#text[this.#at];
    if (next === "'" || next === '"') return this.#string(next);
    if (this.#take("[")) return this.#list("]", depth);
    if (this.#take("(")) return this.#list(")", depth);
    if (this.#take("{")) return this.#dict(depth);
    const number = this.#tryMatch(/([-+]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)/y);
    if (number !== undefined) return Number(number.replaceAll("_", ""));
    switch (this.#match(/[A-Za-z]+/y)) {
      case "True":
        return true;
      case "False":
        return false;
      case "None":
        return null;
      default:
        throw new NotLiteral("a name");
    }
  }

  #list(end: string, depth: number): unknown[] {
    const items: unknown[] = [];
    while (!this.#take(end)) {
      items.push(this.#value(depth + 1));
      if (!this.#take(",")) {
        this.#expect(end);
        break;
      }
    }
    return items;
  }

  #dict(depth: number): Record<string, unknown> {
    const entries: [string, unknown][] = [];
    while (!this.#take("}")) {
      const key = this.#value(depth + 1);
      if (typeof key !== "string") throw new NotLiteral("a key that is no text");
      this.#expect(":");
      entries.push([key, this.#value(depth + 1)]);
      if (!this.#take(",")) {
        this.#expect("}");
        break;
      }
    }
    return Object.fromEntries(entries);
  }

  #string(quote: string): string {
    let text = "";
    for (this.#at++; this.#at < this.#text.length; this.#at++) {
      const next = this.#text[this.#at] ?? "";
      if (next === quote) {
        this.#at++;
        return text;
      }
      if (next !== "\\") {
        text += next;
        continue;
      }
      const escaped = this.#text[++this.#at] ?? "";
      text += escapes[escaped] ?? `\\${escaped}`;
    }
    throw new NotLiteral("an open string");
  }

  #space(): void {
    while (/\s/.test(this.#text[this.#at] ?? "")) this.#at++;
  }

  #take(token: string): boolean {
    this.#space();
    if (this.#text[this.#at] !== token) return false;
    this.#at++;
    return true;
  }

  #expect(token: string): void {
    if (!this.#take(token)) throw new NotLiteral(`no ${token}`);
  }

  /** The first group, or the whole, of a sticky pattern here. */
  #tryMatch(pattern: RegExp): string | undefined {
    this.#space();
    pattern.lastIndex = this.#at;
    const match = pattern.exec(this.#text);
    if (match === null) return undefined;
    this.#at = pattern.lastIndex;
    return match[1] ?? match[0];
  }

  #match(pattern: RegExp): string {
    const match = this.#tryMatch(pattern);
    if (match === undefined) throw new NotLiteral("an unexpected character");
    return match;
  }
}
