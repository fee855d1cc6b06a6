import { templateError } from "./template-error.js";
import { endWithoutSpace, isAllSpace, skipSpace } from "./white-space.js";

export type TokenKind =
  | "text"
  | "output-begin"
  | "output-end"
  | "block-begin"
  | "block-end"
  | "name"
  | "string"
  | "integer"
  | "float"
  | "operator"
  | "end";

export interface Token {
  readonly kind: TokenKind;
  /** Decoded for strings. */
  readonly text: string;
  readonly line: number;
}

const operators = "// ** == != >= <= + - * / % ~ [ ] ( ) { } < > = . : | , ;".split(" ");
const closers: Readonly<Record<string, string>> = { "(": ")", "[": "]", "{": "}" };
const numberPattern =
  /0[xX][0-9a-fA-F_]+|0[oO][0-7_]+|0[bB][01_]+|\d[\d_]*(?:\.\d[\d_]*)?(?:[eE][+-]?\d[\d_]*)?/y;
const namePattern = /[\p{ID_Start}_][\p{ID_Continue}]*/uy;
const stringPattern = /'(?:[^'\\]|\\[\s\S])*'|"(?:[^"\\]|\\[\s\S])*"/y;
const rawEnd = /\{%([-+]?)\s*endraw\s*([-+]?)%\}/g;

/** Cuts a template into tokens with transformers' settings: `trim_blocks` and `lstrip_blocks` on. */
export function tokenize(source: string): Token[] {
  const text = source.replace(/\r\n?/g, "\n").replace(/\n$/, "");
  return new Lexer(text).run();
}

class Lexer {
  readonly #source: string;
  readonly #tokens: Token[] = [];
  #index = 0;
  #line = 1;
  /** Where the text after the last tag starts on a new line: white space there may be stripped with the next tag. */
  #lineStarting = true;

  constructor(source: string) {
    this.#source = source;
  }

  run(): Token[] {
    while (this.#index < this.#source.length) {
      const tag = this.#nextTag();
      this.#pushText(tag);
      if (tag === undefined) break;
      if (tag.kind === "{#") this.#comment();
      else if (tag.kind === "{%") this.#block();
      else {
        this.#expression("output-begin", "output-end", "}}");
        this.#lineStarting = false;
      }
    }
    this.#tokens.push({ kind: "end", text: "", line: this.#line });
    return this.#tokens;
  }

  #nextTag(): { at: number; kind: "{{" | "{%" | "{#" } | undefined {
    for (let at = this.#source.indexOf("{", this.#index); at >= 0; at = this.#source.indexOf("{", at + 1)) {
      const kind = this.#source.slice(at, at + 2);
      if (kind === "{{" || kind === "{%" || kind === "{#") return { at, kind };
    }
    return undefined;
  }

  /** The text before a tag, stripped as the tag's marker and `lstrip_blocks` say; leaves the index after the marker. */
  #pushText(tag: { at: number; kind: string } | undefined): void {
    const end = tag?.at ?? this.#source.length;
    const raw = this.#source.slice(this.#index, end);
    let text = raw;
    const marker = tag === undefined ? "" : (this.#source[end + 2] ?? "");
    if (marker === "-") text = text.slice(0, endWithoutSpace(text));
    else if (tag !== undefined && tag.kind !== "{{" && marker !== "+") text = this.#withoutIndent(text);
    if (text !== "") this.#tokens.push({ kind: "text", text, line: this.#line });
    this.#line += count(raw, "\n");
    this.#index = tag === undefined ? end : end + 2 + (marker === "-" || marker === "+" ? 1 : 0);
  }

  #withoutIndent(text: string): string {
    const lineStart = text.lastIndexOf("\n") + 1;
    if (lineStart === 0 && !this.#lineStarting) return text;
    const indent = text.slice(lineStart);
    return indent !== "" && isAllSpace(indent) ? text.slice(0, lineStart) : text;
  }

  #comment(): void {
    const end = this.#source.indexOf("#}", this.#index);
    if (end < 0) throw templateError("A comment is not closed with #}.", this.#line);
    this.#line += count(this.#source.slice(this.#index, end), "\n");
    const marker = this.#source[end - 1] ?? "";
    this.#index = end + 2;
    this.#afterBlock(end - 1 >= 0 && (marker === "-" || marker === "+") ? marker : "");
  }

  #block(): void {
    const raw = /^\s*raw\s*(-?)%\}/.exec(this.#source.slice(this.#index, this.#index + 200));
    if (raw === null) {
      const marker = this.#expression("block-begin", "block-end", "%}");
      this.#afterBlock(marker);
      return;
    }
    this.#index += raw[0].length;
    // a newline stays here, other than after any other block
    this.#afterBlock(raw[1] === "-" ? "-" : "+");
    rawEnd.lastIndex = this.#index;
    const end = rawEnd.exec(this.#source);
    if (end === null) throw templateError("A raw block is not closed with endraw.", this.#line);
    const inner = this.#source.slice(this.#index, end.index);
    const text =
      end[1] === "-"
        ? inner.slice(0, endWithoutSpace(inner))
        : end[1] === "+"
          ? inner
          : this.#withoutIndent(inner);
    if (text !== "") this.#tokens.push({ kind: "text", text, line: this.#line });
    this.#line += count(inner, "\n");
    this.#index = end.index + end[0].length;
    this.#afterBlock(end[2] ?? "");
  }

  /** White space after a block: all of it for `-`, none for `+`, else one newline. */
  #afterBlock(marker: string): void {
    this.#lineStarting = false;
    if (marker === "-") this.#skipSpace();
    else if (marker !== "+" && this.#source[this.#index] === "\n") {
      this.#index++;
      this.#line++;
      this.#lineStarting = true;
    }
  }

  #skipSpace(): void {
    const end = skipSpace(this.#source, this.#index);
    this.#line += count(this.#source.slice(this.#index, end), "\n");
    this.#index = end;
  }

  /** Tokens up to the closing delimiter; returns the marker in front of it. `-` after an output strips here. */
  #expression(begin: TokenKind, end: TokenKind, close: string): string {
    const startLine = this.#line;
    this.#tokens.push({ kind: begin, text: "", line: this.#line });
    const open: string[] = [];
    for (;;) {
      this.#skipSpace();
      if (this.#index >= this.#source.length)
        throw templateError(`A tag is not closed with ${close}.`, startLine);
      if (open.length === 0) {
        const marker =
          /[-+]/.test(this.#source[this.#index]!) && this.#source.startsWith(close, this.#index + 1)
            ? this.#source[this.#index]!
            : "";
        // `+` before }} is not a marker
        if (
          (marker !== "" && !(marker === "+" && close === "}}")) ||
          this.#source.startsWith(close, this.#index)
        ) {
          this.#index += close.length + marker.length;
          this.#tokens.push({ kind: end, text: "", line: this.#line });
          if (close === "}}" && marker === "-") this.#skipSpace();
          return marker;
        }
      }
      this.#token(open);
    }
  }

  #token(open: string[]): void {
    const line = this.#line;
    const push = (kind: TokenKind, text: string, length: number): void => {
      this.#tokens.push({ kind, text, line });
      this.#index += length;
    };
    const name = this.#match(namePattern);
    if (name !== undefined) return push("name", name, name.length);
    const number = this.#match(numberPattern);
    if (number !== undefined) {
      const isFloat = /^\d[\d_]*(?:\.|[eE]|\d[\d_]*[eE])/.test(number) && !/^0[xXoObB]/.test(number);
      return push(isFloat ? "float" : "integer", number.replaceAll("_", ""), number.length);
    }
    const string = this.#match(stringPattern);
    if (string !== undefined) {
      push("string", decodeString(string.slice(1, -1)), string.length);
      this.#line += count(string, "\n");
      return;
    }
    const operator = operators.find((candidate) => this.#source.startsWith(candidate, this.#index));
    if (operator === undefined)
      throw templateError(`Unexpected character ${JSON.stringify(this.#source[this.#index])}.`, line);
    const closer = Object.hasOwn(closers, operator) ? closers[operator] : undefined;
    if (closer !== undefined) open.push(closer);
    else if (operator === ")" || operator === "]" || operator === "}") {
      if (open.pop() !== operator) throw templateError(`Unexpected ${operator}.`, line);
    }
    push("operator", operator, operator.length);
  }

  #match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#index;
    return pattern.exec(this.#source)?.[0];
  }
}

function count(text: string, character: string): number {
  let total = 0;
  for (let at = text.indexOf(character); at >= 0; at = text.indexOf(character, at + 1)) total++;
  return total;
}

const simpleEscapes: Readonly<Record<string, string>> = {
  n: "\n",
  r: "\r",
  t: "\t",
  b: "\b",
  f: "\f",
  v: "\v",
  a: "\x07",
  "\\": "\\",
  "'": "'",
  '"': '"',
  "\n": "",
};

/** Python's string escapes; an unknown one keeps its backslash. */
function decodeString(body: string): string {
  return body.replace(
    /\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{1,3})|([\s\S]))/g,
    (whole, x?: string, u?: string, wide?: string, octal?: string, simple?: string) => {
      const hex = x ?? u ?? wide;
      if (hex !== undefined) {
        const code = Number.parseInt(hex, 16);
        return code <= 0x10ffff ? String.fromCodePoint(code) : whole;
      }
      if (octal !== undefined) return String.fromCharCode(Number.parseInt(octal, 8));
      return Object.hasOwn(simpleEscapes, simple!) ? simpleEscapes[simple!]! : whole;
    },
  );
}
