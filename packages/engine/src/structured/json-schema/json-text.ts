import { type CodeSet, complement, intersect, pairs, utf8Node } from "../code-points.js";
import { byteRange, choice, type Node, optional, repeat, sequence, text } from "../node.js";
import { lowerRegex, type TextEncoding } from "../regex/lower-regex.js";
import { parseRegex } from "../regex/regex-syntax.js";
import type { JsonLayout, JsonValue } from "../grammar.js";

const unescaped: CodeSet = complement([0, 0x1f, 0x22, 0x22, 0x5c, 0x5c]);
const encoded = new Map<CodeSet, Node>();

/** Each character in the one way that JSON.stringify writes it. */
function canonicalCharacters(set: CodeSet): Node {
  let node = encoded.get(set);
  if (node === undefined) {
    const escaped = intersect(set, [0, 0x1f, 0x22, 0x22, 0x5c, 0x5c]);
    const escapes = pairs(escaped).flatMap(([first, last]) =>
      Array.from({ length: last - first + 1 }, (_, offset) =>
        text(JSON.stringify(String.fromCodePoint(first + offset)).slice(1, -1)),
      ),
    );
    node = choice(utf8Node(intersect(set, unescaped)), ...escapes);
    encoded.set(set, node);
  }
  return node;
}

export const anyCanonicalCharacter = canonicalCharacters([0, 0x10ffff]);
export const canonicalText: Node = repeat(anyCanonicalCharacter, 0, Number.POSITIVE_INFINITY);

/** Characters of a string with a constraint on its content: one way to write each, so that text and content agree. */
export const jsonStringEncoding: TextEncoding = { characters: canonicalCharacters, anything: canonicalText };

const hex = choice(byteRange(0x30, 0x39), byteRange(0x41, 0x46), byteRange(0x61, 0x66));
const notD = choice(
  byteRange(0x30, 0x39),
  byteRange(0x41, 0x43),
  byteRange(0x45, 0x46),
  byteRange(0x61, 0x63),
  byteRange(0x65, 0x66),
);
const letterD = choice(text("d"), text("D"));
/** A character in any of the ways that JSON has, lone surrogates apart. */
export const anyCharacter: Node = choice(
  utf8Node(unescaped),
  sequence(text("\\"), choice(...Array.from('"\\/bfnrt', text))),
  sequence(
    text("\\u"),
    choice(
      sequence(notD, hex, hex, hex),
      sequence(letterD, byteRange(0x30, 0x37), hex, hex),
      sequence(
        letterD,
        choice(byteRange(0x38, 0x39), byteRange(0x41, 0x42), byteRange(0x61, 0x62)),
        hex,
        hex,
        text("\\u"),
        letterD,
        choice(byteRange(0x43, 0x46), byteRange(0x63, 0x66)),
        hex,
        hex,
      ),
    ),
  ),
);

/** Indentation at most, in spaces or tabs. */
const maxIndent = 64;

/** Where whitespace may stand, and which. */
export interface JsonSpaces {
  /** After `[`, `{` and before `]`, `}`. */
  readonly inside: Node;
  readonly afterComma: Node;
  readonly afterColon: Node;
}

const plain = utf8Encoding();
const oneSpace = optional(text(" "));
const lineBreak = sequence(text("\n"), repeat(choice(text(" "), text("\t")), 0, maxIndent));
const flexible: JsonSpaces = {
  inside: choice(oneSpace, lineBreak),
  afterComma: choice(oneSpace, lineBreak),
  afterColon: oneSpace,
};
const compact: JsonSpaces = { inside: text(""), afterComma: text(" "), afterColon: text(" ") };

export function jsonSpaces(layout: JsonLayout): JsonSpaces {
  if (layout.whitespacePattern !== undefined) {
    const space = lowerRegex(parseRegex(layout.whitespacePattern), plain, false);
    return { inside: space, afterComma: space, afterColon: space };
  }
  return layout.whitespace === "compact" ? compact : flexible;
}

/** Text as it is. */
export function utf8Encoding(): TextEncoding {
  return { characters: utf8Node, anything: repeat(utf8Node([0, 0x10ffff]), 0, Number.POSITIVE_INFINITY) };
}

/** One value, with the whitespace that the layout allows. */
export function valueNode(value: JsonValue, spaces: JsonSpaces): Node {
  if (Array.isArray(value))
    return listNode(
      "[",
      value.map((item: JsonValue) => valueNode(item, spaces)),
      "]",
      spaces,
    );
  if (typeof value === "object" && value !== null) {
    const members = Object.entries(value).map(([key, item]) =>
      sequence(text(`${JSON.stringify(key)}:`), spaces.afterColon, valueNode(item, spaces)),
    );
    return listNode("{", members, "}", spaces);
  }
  return text(JSON.stringify(value));
}

function listNode(open: string, items: readonly Node[], close: string, spaces: JsonSpaces): Node {
  if (items.length === 0) return text(open + close);
  const rest = items.flatMap((item, index) => (index === 0 ? [item] : [text(","), spaces.afterComma, item]));
  return sequence(text(open), spaces.inside, ...rest, spaces.inside, text(close));
}
