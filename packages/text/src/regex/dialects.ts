import type { ErrorCode } from "@octavo/protocol/errors";
import { CharacterSet, decimalDigits, hexDigits, whitespace, wordCharacters } from "./character-set.js";
import { namedSet } from "./oniguruma-names.js";
import type { Anchor, Regex } from "./syntax-tree.js";

/** What a backslash and a letter stand for: a character, a class of them, a place, or more. */
type EscapeMeaning = number | CharacterSet | Anchor | Regex;

/** What two syntaxes of regular expressions have different meanings or forms for. */
export interface Dialect {
  /** Oniguruma's own constructs: options, comments, atomic groups, possessive quantifiers, nested classes, `&&`, `[:name:]`. */
  readonly hasExtensions: boolean;
  /** Begins error messages. */
  readonly subject: string;
  readonly errorCode: ErrorCode;
  readonly maxLength: number;
  readonly maxRepeat: number;
  /** `{min,max}`: captures the minimum, the comma and the maximum. */
  readonly interval: RegExp;
  /** `\p` and `\P`: captures `^` and the name. */
  readonly property: RegExp;
  readonly groupName: RegExp;
  readonly hexEscapes: { readonly x: RegExp; readonly u: RegExp };
  readonly dot: CharacterSet;
  readonly lineStart: Anchor;
  readonly lineEnd: Anchor;
  readonly escapes: ReadonlyMap<string, EscapeMeaning>;
  /** The set of `\p{name}`; undefined for an unknown name. */
  readonly named: (name: string) => CharacterSet | undefined;
  /** Whether a backslash before this character stands for the character itself. */
  readonly isIdentity: (letter: string) => boolean;
}

function withComplements(classes: Readonly<Record<string, CharacterSet>>): [string, EscapeMeaning][] {
  return Object.entries(classes).flatMap(([letter, set]) => [
    [letter, set],
    [letter.toUpperCase(), CharacterSet.complement(set)],
  ]);
}

const sharedControls: readonly [string, EscapeMeaning][] = [
  ["n", 0x0a],
  ["r", 0x0d],
  ["t", 0x09],
  ["f", 0x0c],
  ["v", 0x0b],
];

const lineFeed = CharacterSet.of([0x0a, 0x0a]);

/** `\R`, atomic so that CR LF is never split. */
const lineBreak: Regex = {
  kind: "atomic",
  item: {
    kind: "choice",
    items: [
      {
        kind: "sequence",
        items: [
          { kind: "set", set: CharacterSet.of([0x0d, 0x0d]) },
          { kind: "set", set: lineFeed },
        ],
      },
      { kind: "set", set: CharacterSet.of([0x0a, 0x0d, 0x85, 0x85, 0x2028, 0x2029]) },
    ],
  },
};

/**
 * The syntax of Oniguruma (the engine behind Hugging Face's `tokenizers`), as far as tokenizers use it: no
 * back-references, subexpression calls, conditionals or absent operators.
 */
export const oniguruma: Dialect = {
  hasExtensions: true,
  subject: "The tokenizer's pattern",
  errorCode: "artifact_unsupported",
  maxLength: 100_000,
  maxRepeat: 100_000,
  interval: /^\{(?=,?\d)(\d*)(,?)(\d*)\}/,
  property: /^\{(\^?)([^}]+)\}/,
  groupName: /^<[A-Za-z_]\w*>/,
  hexEscapes: {
    x: /^(?:\{([0-9a-fA-F]{1,8})\}|([0-9a-fA-F]{1,2}))/,
    u: /^(?:\{([0-9a-fA-F]{1,8})\}|([0-9a-fA-F]{4}))/,
  },
  dot: CharacterSet.complement(lineFeed),
  lineStart: "lineStart",
  lineEnd: "lineEnd",
  escapes: new Map<string, EscapeMeaning>([
    ...sharedControls,
    ["a", 0x07],
    ["e", 0x1b],
    ...withComplements({ d: decimalDigits, s: whitespace, w: wordCharacters, h: hexDigits }),
    ["A", "textStart"],
    ["z", "textEnd"],
    ["Z", "textEndOrLastNewline"],
    ["b", "wordBoundary"],
    ["B", "notWordBoundary"],
    ["R", lineBreak],
  ]),
  named: namedSet,
  isIdentity: (letter) => !/[A-Za-z0-9]/.test(letter),
};

const identityEscapes = "^$\\.*+?()[]{}|/-\"'`~!@#%&=:;,<> _";

/** ECMAScript's syntax with the `u` flag, without what no automaton can do. */
export const ecmaScript: Dialect = {
  hasExtensions: false,
  subject: "The pattern",
  errorCode: "invalid_request",
  maxLength: 20_000,
  maxRepeat: 10_000,
  interval: /^\{(\d{1,9})(?:(,)(\d{0,9}))?\}/,
  property: /^\{(\^?)([\w=]{1,60})\}/,
  groupName: /^P?<[A-Za-z_$][\w$]*>/,
  hexEscapes: { x: /^()([\da-fA-F]{2})/, u: /^(?:\{([\da-fA-F]{1,6})\}|([\da-fA-F]{4}))/ },
  dot: CharacterSet.complement(CharacterSet.of([0x0a, 0x0a, 0x0d, 0x0d, 0x2028, 0x2029])),
  lineStart: "textStart",
  lineEnd: "textEnd",
  escapes: new Map<string, EscapeMeaning>([
    ...sharedControls,
    ...withComplements({
      d: CharacterSet.of([0x30, 0x39]),
      w: CharacterSet.of([0x30, 0x39, 0x41, 0x5a, 0x5f, 0x5f, 0x61, 0x7a]),
      s: CharacterSet.of([
        0x09, 0x0d, 0x20, 0x20, 0xa0, 0xa0, 0x1680, 0x1680, 0x2000, 0x200a, 0x2028, 0x2029, 0x202f, 0x202f,
        0x205f, 0x205f, 0x3000, 0x3000, 0xfeff, 0xfeff,
      ]),
    }),
    ["A", "textStart"],
    ["Z", "textEnd"],
    ["z", "textEnd"],
  ]),
  named(name) {
    try {
      return CharacterSet.matching(`\\p{${name}}`);
    } catch {
      return undefined;
    }
  },
  isIdentity: (letter) => identityEscapes.includes(letter) || letter.codePointAt(0)! >= 0x80,
};
