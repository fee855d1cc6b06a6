import type { OctavoError } from "@octavo/protocol/errors";
import type { Token, TokenKind } from "./lexer.js";
import { templateError } from "./template-error.js";

const maxDepth = 200;

/** The tokens of a template with a place in them. */
export class TokenStream {
  readonly #tokens: readonly Token[];
  #index = 0;
  #depth = 0;

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens;
  }

  get current(): Token {
    return this.#tokens[this.#index]!;
  }

  get following(): Token {
    return this.#tokens[Math.min(this.#index + 1, this.#tokens.length - 1)]!;
  }

  next(): Token {
    const token = this.current;
    if (token.kind !== "end") this.#index++;
    return token;
  }

  is(kind: TokenKind, text?: string): boolean {
    return this.current.kind === kind && (text === undefined || this.current.text === text);
  }

  accept(kind: TokenKind, text?: string): boolean {
    if (!this.is(kind, text)) return false;
    this.next();
    return true;
  }

  expect(kind: TokenKind, text?: string): Token {
    if (!this.is(kind, text)) throw this.unexpected(text ?? kind);
    return this.next();
  }

  unexpected(wanted: string): OctavoError {
    const { kind, text, line } = this.current;
    const found = kind === "end" ? "the end of the template" : text === "" ? kind : JSON.stringify(text);
    return templateError(`The template does not parse: expected ${wanted}, found ${found}`, line);
  }

  /** Bounds recursion over nested constructs. */
  nested<Result>(parse: () => Result): Result {
    if (++this.#depth > maxDepth)
      throw templateError("The template is nested too deeply.", this.current.line);
    const result = parse();
    this.#depth--;
    return result;
  }
}
