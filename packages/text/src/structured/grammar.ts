/** JSON as a parser returns it. */
export type JsonValue = null | boolean | number | string | readonly JsonValue[] | JsonObject;
/** An object of `JsonValue`s. */
export interface JsonObject {
  readonly [key: string]: JsonValue;
}

/** Whitespace between the tokens of generated JSON; see `docs/guide/structured-output.md`. */
export interface JsonLayout {
  /** `flexible` (default) allows one space, or one line break with indentation, where JSON writers put them; `compact` only a space after `:` and `,`. */
  readonly whitespace?: "flexible" | "compact";
  /** A regular expression for what may stand between tokens; overrides `whitespace`. */
  readonly whitespacePattern?: string;
  /** Escapes in strings: any that JSON allows (default); only required ones; or those and one for `<`, so that no markup appears. */
  readonly escapes?: "any" | "needed" | "needed and markup";
}

/** A part of the output between fixed texts, such as a tool call. */
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
      /** JSON pointer to the subschema to use; its references are resolved in the whole schema. */
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
  | {
      readonly kind: "grammar";
      readonly source: string;
      /** Written between the quotes of a JSON string. */
      readonly inString?: boolean;
      /** Texts that do not appear in it; not for grammars that refer to themselves. */
      readonly without?: readonly string[];
    }
  | { readonly kind: "literal"; readonly text: string }
  /** Free text; with `until`, up to and including the first appearance of that text, such as the end tag of reasoning. */
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
 * How far one sequence has come. Methods other than the getters throw `invalid_request` when a step exceeds the work
 * limit.
 */
export interface Matcher {
  /** Tokens accepted and not rolled back. */
  readonly numAccepted: number;
  /** The text so far is a complete output: an end-of-sequence token may follow. */
  readonly isComplete: boolean;
  /** Complete, and nothing can follow but the end. */
  readonly isFinished: boolean;
  /** Advances by a token. Returns false, without advancing, when the grammar does not allow it. */
  accept(token: number): boolean;
  /** Writes which tokens may come next into `mask` (of `maskWords` words). End-of-sequence tokens are left to the caller. */
  fillMask(mask: Uint32Array): void;
  /** Makes the mask that `fillMask` then only copies, in parts of bounded work between which a caller can pause; yields each part's units. */
  preparing(): Generator<number, void>;
  /** The only token that may come next, when the text cannot end here and there is exactly one. */
  forcedToken(): number | undefined;
  /** Undoes the last `count` accepted tokens. */
  rollback(count: number): void;
  clone(): Matcher;
}
