import { CharacterSet, decimalDigits, hexDigits, whitespace, wordCharacters } from "./character-set.js";
import type { Assertion, PatternNode } from "./parse-pattern.js";

/** Letters that stand for a control character after a backslash. */
export const controlEscapes: Readonly<Record<string, number>> = {
  n: 0x0a,
  r: 0x0d,
  t: 0x09,
  f: 0x0c,
  v: 0x0b,
  a: 0x07,
  e: 0x1b,
};

/** Letters that stand for a class of characters. */
export const classEscapes: Readonly<Record<string, CharacterSet>> = {
  d: decimalDigits,
  D: CharacterSet.complement(decimalDigits),
  s: whitespace,
  S: CharacterSet.complement(whitespace),
  w: wordCharacters,
  W: CharacterSet.complement(wordCharacters),
  h: hexDigits,
  H: CharacterSet.complement(hexDigits),
};

/** Letters that stand for a place. */
export const assertionEscapes: Readonly<Record<string, Assertion>> = {
  A: "textStart",
  z: "textEnd",
  Z: "textEndOrLastNewline",
  b: "wordBoundary",
  B: "notWordBoundary",
};

/** `\R`, atomic so that CR LF is never split. */
export const lineBreak: PatternNode = {
  kind: "atomic",
  item: {
    kind: "alternation",
    branches: [
      {
        kind: "sequence",
        items: [
          { kind: "set", set: CharacterSet.range(0x0d, 0x0d) },
          { kind: "set", set: CharacterSet.range(0x0a, 0x0a) },
        ],
      },
      { kind: "set", set: CharacterSet.matching("[\\n-\\r\\x85\\u2028\\u2029]") },
    ],
  },
};
