import { type CodeSet, complement, intersect, pairs } from "../../regex/code-points.js";
import { utf8Node } from "../utf8-node.js";
import { byteRange, choice, type Node, optional, repeat, sequence, text } from "../node.js";
import { lowerRegex, type TextEncoding } from "../lower-regex.js";
import { parseRegex } from "../../regex/parse-regex.js";
import type { JsonLayout, JsonValue } from "../grammar.js";

const escapedCodes = [0, 0x1f, 0x22, 0x22, 0x5c, 0x5c];
const unescaped: CodeSet = complement(escapedCodes);

/** How the characters of a string are written. */
export interface StringWriting {
  /** A character in any of its spellings, and in the one spelling that conditions on content use. */
  readonly anyCharacter: Node;
  readonly character: Node;
  readonly anything: Node;
  readonly encoding: TextEncoding;
  readonly write: (value: string) => string;
}

/** Each character in the one spelling that `write` gives it. */
function jsonEncoding(alsoEscaped: CodeSet, write: (value: string) => string): TextEncoding {
  const encoded = new Map<CodeSet, Node>();
  const toEscape = [...escapedCodes, ...alsoEscaped];
  const characters = (set: CodeSet): Node => {
    let node = encoded.get(set);
    if (node === undefined) {
      const plain = intersect(set, complement([0, 0x1f, 0x22, 0x22, ...alsoEscaped, 0x5c, 0x5c]));
      const escapes = pairs(toEscape).flatMap(([first, last]) =>
        pairs(intersect(set, [first, last])).flatMap(([from, to]) =>
          Array.from({ length: to - from + 1 }, (_, offset) =>
            text(write(String.fromCodePoint(from + offset))),
          ),
        ),
      );
      node = choice(utf8Node(plain), ...escapes);
      encoded.set(set, node);
    }
    return node;
  };
  return { characters, anything: repeat(characters([0, 0x10ffff]), 0, Number.POSITIVE_INFINITY) };
}

const writeJson = (value: string): string => JSON.stringify(value).slice(1, -1);
const writeWithoutMarkup = (value: string): string => writeJson(value).replaceAll("<", "\\u003c");

/** Characters of a string with a constraint on its content: one spelling each, so that conditions can be checked on the written text. */
const jsonStringEncoding: TextEncoding = jsonEncoding([], writeJson);
const markupFreeEncoding = jsonEncoding([0x3c, 0x3c], writeWithoutMarkup);

const hex = choice(byteRange(0x30, 0x39), byteRange(0x41, 0x46), byteRange(0x61, 0x66));
const notD = choice(
  byteRange(0x30, 0x39),
  byteRange(0x41, 0x43),
  byteRange(0x45, 0x46),
  byteRange(0x61, 0x63),
  byteRange(0x65, 0x66),
);
const letterD = choice(text("d"), text("D"));
/** A character in any spelling that JSON allows, without lone surrogates. */
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

/** Between the quotes of JSON. */
export const jsonWriting: StringWriting = {
  anyCharacter,
  character: jsonStringEncoding.characters([0, 0x10ffff]),
  anything: jsonStringEncoding.anything,
  encoding: jsonStringEncoding,
  write: writeJson,
};

const canonicalWriting: StringWriting = { ...jsonWriting, anyCharacter: jsonWriting.character };
const markupFreeWriting: StringWriting = {
  anyCharacter: markupFreeEncoding.characters([0, 0x10ffff]),
  character: markupFreeEncoding.characters([0, 0x10ffff]),
  anything: markupFreeEncoding.anything,
  encoding: markupFreeEncoding,
  write: writeWithoutMarkup,
};

export function stringWriting({ escapes = "any" }: JsonLayout): StringWriting {
  return escapes === "any" ? jsonWriting : escapes === "needed" ? canonicalWriting : markupFreeWriting;
}

/** Most spaces or tabs of indentation. */
const maxIndent = 64;

/** Allowed whitespace by place. */
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

/** As it is. */
export const plainWriting: StringWriting = {
  anyCharacter: utf8Node([0, 0x10ffff]),
  character: utf8Node([0, 0x10ffff]),
  anything: plain.anything,
  encoding: plain,
  write: (value) => value,
};

/** Text as it is. */
export function utf8Encoding(): TextEncoding {
  return { characters: utf8Node, anything: repeat(utf8Node([0, 0x10ffff]), 0, Number.POSITIVE_INFINITY) };
}

/** One value, with the whitespace that the layout allows. */
export function valueNode(value: JsonValue, spaces: JsonSpaces, { write } = jsonWriting): Node {
  const of = (part: JsonValue): Node => {
    if (Array.isArray(part))
      return listNode(
        "[",
        part.map((item: JsonValue) => of(item)),
        "]",
        spaces,
      );
    if (typeof part === "object" && part !== null) {
      const members = Object.entries(part).map(([key, item]) =>
        sequence(text(`"${write(key)}":`), spaces.afterColon, of(item)),
      );
      return listNode("{", members, "}", spaces);
    }
    return text(typeof part === "string" ? `"${write(part)}"` : JSON.stringify(part));
  };
  return of(value);
}

function listNode(open: string, items: readonly Node[], close: string, spaces: JsonSpaces): Node {
  if (items.length === 0) return text(open + close);
  const rest = items.flatMap((item, index) => (index === 0 ? [item] : [text(","), spaces.afterComma, item]));
  return sequence(text(open), spaces.inside, ...rest, spaces.inside, text(close));
}
