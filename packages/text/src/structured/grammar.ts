/** JSON as a parser returns it. */
export type JsonValue = null | boolean | number | string | readonly JsonValue[] | JsonObject;
export interface JsonObject {
  readonly [key: string]: JsonValue;
}

/** Whitespace between the tokens of generated JSON; see `docs/guide/structured-output.md`. */
export interface JsonLayout {
  /** `flexible` (default) allows one space or one line break with indentation where writers put them; `compact` none but after `:` and `,`. */
  readonly whitespace?: "flexible" | "compact";
  /** A regular expression for what may stand between tokens; overrides `whitespace`. */
  readonly whitespacePattern?: string;
  /** Which escapes strings have: any that JSON knows (default), those that it needs, or those and one for `<`, so that no markup appears. */
  readonly escapes?: "any" | "needed" | "needed and markup";
}

/** A part of the output with fixed borders, such as a tool call. */
export interface TagSpec {
  readonly begin: string;
  readonly content: GrammarSpec;
  readonly end: string;
}

/** What the output must look like. Everything but `tagged_text` and `any_text` constrains every byte. */
export type GrammarSpec =
  | {
      readonly kind: "json_schema";
      readonly schema: JsonValue;
      readonly layout?: JsonLayout;
      /** JSON pointer to the part of `schema` that is meant; references in it are still looked up in the whole. */
      readonly at?: string;
      /** Leaves strings out. */
      readonly withoutStrings?: boolean;
    }
  /** A string under a schema as plain text: neither quotes nor escapes. */
  | {
      readonly kind: "schema_text";
      readonly schema: JsonValue;
      readonly at?: string;
      /** Texts that do not appear in it, such as the markup that ends it. */
      readonly without?: readonly string[];
      /** Leaves out what could be read as JSON. */
      readonly isNotJson?: boolean;
    }
  /** Any JSON object. */
  | { readonly kind: "json_object"; readonly layout?: JsonLayout }
  /** ECMAScript syntax; the whole output must match. */
  | { readonly kind: "regex"; readonly pattern: string }
  | { readonly kind: "choice"; readonly choices: readonly string[] }
  /** GBNF (`root ::= ...`) or Lark (`start: ...`). */
  | { readonly kind: "grammar"; readonly source: string }
  | { readonly kind: "literal"; readonly text: string }
  /** Free text; with `until` up to and with the first appearance of that text, as a model's reasoning ends. */
  | { readonly kind: "any_text"; readonly until?: string }
  | { readonly kind: "sequence"; readonly parts: readonly GrammarSpec[] }
  | { readonly kind: "any_of"; readonly options: readonly GrammarSpec[] }
  | {
      readonly kind: "repeat";
      readonly item: GrammarSpec;
      readonly separator?: string;
      readonly min?: number;
      readonly max?: number;
    }
  /**
   * Free text in which a trigger may appear only as the beginning of one of the tags, which then runs to its end.
   * Every tag's `begin` starts with a trigger.
   */
  | {
      readonly kind: "tagged_text";
      readonly triggers: readonly string[];
      readonly tags: readonly TagSpec[];
      readonly atLeastOne?: boolean;
      readonly stopAfterFirst?: boolean;
    };

/** A compiled specification over one vocabulary; any number of sequences may be matched against it. */
export interface Grammar {
  /** 32-bit words of a mask: bit `id & 31` of word `id >> 5` stands for token `id`. */
  readonly maskWords: number;
  start(): Matcher;
}

/**
 * How far one sequence has come. Methods other than the getters throw `invalid_request` when the grammar asks for more
 * work in one step than is allowed.
 */
export interface Matcher {
  /** Tokens accepted and not rolled back. */
  readonly numAccepted: number;
  /** The text so far is a whole output: an end-of-sequence token may follow. */
  readonly isComplete: boolean;
  /** Complete, and nothing can follow but the end. */
  readonly isFinished: boolean;
  /** Goes on by a token. Returns false, and stays where it was, when the grammar does not allow it. */
  accept(token: number): boolean;
  /** Writes which tokens may come next into `mask` (of `maskWords` words). End-of-sequence tokens are left to the caller. */
  fillMask(mask: Uint32Array): void;
  /** The only token that may come next, when the text cannot end here and there is exactly one. */
  forcedToken(): number | undefined;
  /** Takes back the last `count` accepted tokens. */
  rollback(count: number): void;
  clone(): Matcher;
}
