/** JSON with the places of its parts in the text. Offsets are UTF-16; strings' are those between the quotes. */
export type JsonNode =
  | { readonly kind: "scalar"; readonly start: number; readonly end: number }
  | {
      readonly kind: "array";
      readonly start: number;
      readonly end: number;
      readonly items: readonly JsonNode[];
    }
  | {
      readonly kind: "object";
      readonly start: number;
      readonly end: number;
      readonly members: readonly JsonMember[];
    };

interface JsonMember {
  readonly key: string;
  readonly keyStart: number;
  readonly keyEnd: number;
  readonly value: JsonNode;
}

const maxDepth = 64;
const number = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y;
const string = /"((?:[^"\\\p{Cc}]|\\(?:["\\/bfnrt]|u[\da-fA-F]{4}))*)"/uy;
const space = /[ \t\n\r]*/y;

/** The JSON value that begins at `start`; undefined where none does, or deeper than 64 levels. Text may follow it. */
export function parseJsonAt(text: string, start: number): JsonNode | undefined {
  return new Parser(text, start).value(0);
}

class Parser {
  readonly #text: string;
  #at: number;

  constructor(text: string, start: number) {
    this.#text = text;
    this.#at = start;
  }

  value(depth: number): JsonNode | undefined {
    const start = this.#at;
    const first = this.#text[start];
    if (first === "{") return depth < maxDepth ? this.#object(depth, start) : undefined;
    if (first === "[") return depth < maxDepth ? this.#array(depth, start) : undefined;
    if (first === '"') {
      const body = this.#match(string)?.[1];
      return body === undefined ? undefined : { kind: "scalar", start: start + 1, end: this.#at - 1 };
    }
    return this.#match(number) === undefined ? undefined : { kind: "scalar", start, end: this.#at };
  }

  #object(depth: number, start: number): JsonNode | undefined {
    const members: JsonMember[] = [];
    this.#at++;
    this.#match(space);
    while (!this.#take("}")) {
      if (members.length > 0 && !this.#separator()) return undefined;
      const keyStart = this.#at + 1;
      const key = this.#match(string)?.[1];
      if (key === undefined) return undefined;
      const keyEnd = this.#at - 1;
      this.#match(space);
      if (!this.#take(":")) return undefined;
      this.#match(space);
      const value = this.value(depth + 1);
      if (value === undefined) return undefined;
      members.push({ key, keyStart, keyEnd, value });
      this.#match(space);
    }
    return { kind: "object", start, end: this.#at, members };
  }

  #array(depth: number, start: number): JsonNode | undefined {
    const items: JsonNode[] = [];
    this.#at++;
    this.#match(space);
    while (!this.#take("]")) {
      if (items.length > 0 && !this.#separator()) return undefined;
      const item = this.value(depth + 1);
      if (item === undefined) return undefined;
      items.push(item);
      this.#match(space);
    }
    return { kind: "array", start, end: this.#at, items };
  }

  #separator(): boolean {
    if (!this.#take(",")) return false;
    this.#match(space);
    return true;
  }

  #take(character: string): boolean {
    if (this.#text[this.#at] !== character) return false;
    this.#at++;
    return true;
  }

  #match(pattern: RegExp): RegExpExecArray | undefined {
    pattern.lastIndex = this.#at;
    const match = pattern.exec(this.#text);
    if (match === null) return undefined;
    this.#at += match[0].length;
    return match;
  }
}
