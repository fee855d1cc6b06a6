import type { Arguments } from "./arguments.js";
import { fixedDecimals } from "./formatting.js";
import { toMarkup } from "./markup.js";
import { boundedText, printed } from "./printing.js";
import { repeatText, stringMethod } from "./string-methods.js";
import { templateError } from "./template-error.js";
import {
  Float,
  iterate,
  Markup,
  Tuple,
  Undefined,
  itemsOf,
  typeName,
  valueOr,
  type Value,
} from "./values.js";
import { splitLines } from "./white-space.js";

/** A string's method as a filter. */
export function callMethod(text: string, name: string, positional: readonly Value[]): string {
  return printed(stringMethod(text, name)!.call(positional, new Map()));
}

/** Lines end where Python's `splitlines` ends them, and with a newline afterwards. */
export function indent(text: string, args: Arguments): string {
  const width = valueOr(args.get(0, "width"), 4);
  const prefix = typeof width === "string" ? width : repeatText(" ", args.integer(0, "width", 4));
  const indentFirst = args.boolean(1, "first", false);
  const indentBlank = args.boolean(2, "blank", false);
  const indented = splitLines(`${text}\n`).map(({ line }, index) => {
    const isIndented = index === 0 ? indentFirst : line !== "" || indentBlank;
    return isIndented ? prefix + line : line;
  });
  return boundedText(indented.join("\n"));
}

export function truncate(text: string, args: Arguments): string {
  const length = args.integer(0, "length", 255);
  const killWords = args.boolean(1, "killwords", false);
  const end = args.string(2, "end", "...");
  const leeway = args.integer(3, "leeway", 5);
  const endLength = Array.from(end).length;
  if (length < endLength || leeway < 0)
    throw templateError(`truncate: the length must be at least ${endLength}, the leeway at least 0`);
  const characters = Array.from(text);
  if (characters.length <= length + leeway) return text;
  const kept = characters.slice(0, length - endLength).join("");
  if (killWords) return kept + end;
  const space = kept.lastIndexOf(" ");
  return (space < 0 ? kept : kept.slice(0, space)) + end;
}

/** Each word's first letter is upper case and the rest is lower; words follow white space, `-` and opening brackets. */
export function titleWords(text: string): string {
  return text
    .split(/([-\s({[<]+)/)
    .map((part) => {
      const [first = "", ...rest] = Array.from(part);
      return first.toUpperCase() + rest.join("").toLowerCase();
    })
    .join("");
}

export function urlEncode(value: Value): string {
  const quoted = (part: Value): string =>
    encodeURIComponent(printed(part)).replace(
      /[!'()*]/g,
      (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
    );
  const pairs = value instanceof Map ? [...value].map((pair) => new Tuple(pair)) : itemsOf(value);
  if (pairs === undefined) return quoted(value).replaceAll("%2F", "/");
  return pairs
    .map((pair) => {
      const [key, item, ...rest] = iterate(pair);
      if (key === undefined || item === undefined || rest.length > 0)
        throw templateError("urlencode: expected pairs of a key and a value");
      return `${quoted(key)}=${quoted(item)}`.replaceAll("%20", "+");
    })
    .join("&");
}

const sizes = ["B", "MB", "GB", "TB", "PB", "EB", "ZB", "YB"];

export function fileSize(size: number, args: Arguments): string {
  const isBinary = args.boolean(0, "binary", false);
  const base = isBinary ? 1024 : 1000;
  if (size === 1) return "1 Byte";
  if (size < base) return `${Math.trunc(size)} Bytes`;
  const power = Math.max(
    sizes.findIndex((_, index) => size < base ** (index + 2)),
    0,
  );
  const at = size < base ** (sizes.length + 1) ? power : sizes.length - 1;
  const name = at === 0 ? (isBinary ? "KiB" : "kB") : isBinary ? sizes[at]!.replace("B", "iB") : sizes[at]!;
  return `${fixedDecimals((base * size) / base ** (at + 2), 1)} ${name}`;
}

export function attributesOf(value: Value, args: Arguments): string {
  if (!(value instanceof Map)) throw templateError(`'${typeName(value)}' object has no attribute 'items'`);
  const parts = [...value]
    .filter(([, item]) => item !== null && !(item instanceof Undefined))
    .map(([key, item]) => {
      if (typeof key !== "string") throw templateError("xmlattr: a name must be a string");
      if (/[\s/>=]/.test(key)) throw templateError(`Invalid character in attribute name: '${key}'`);
      return `${toMarkup(key).text}="${toMarkup(item).text}"`;
    });
  return (parts.length > 0 && args.boolean(0, "autospace", true) ? " " : "") + parts.join(" ");
}

/** The entities that escaping makes, those that texts have most, and numbers; others stay as they are. */
const entities: Readonly<Record<string, string>> = {
  amp: "&",
  lt: "<",
  gt: ">",
  quot: '"',
  apos: "'",
  nbsp: "\u00a0",
  copy: "©",
  raquo: "»",
  laquo: "«",
  hellip: "…",
  mdash: "—",
  ndash: "–",
};

/** Without tags and comments, white space made single spaces, entities decoded. */
export function stripTags(value: Value): string {
  const text = value instanceof Markup ? value.text : printed(value);
  let kept = "";
  let at = 0;
  for (let start = text.indexOf("<"); start >= 0; start = text.indexOf("<", at)) {
    const close = text.startsWith("<!--", start) ? "-->" : ">";
    const end = text.indexOf(close, close === ">" ? start : start + 4);
    if (end < 0) break;
    kept += text.slice(at, start);
    at = end + close.length;
  }
  const words = stringMethod(kept + text.slice(at), "split")!.call([], new Map());
  return iterate(words)
    .map(printed)
    .join(" ")
    .replace(
      /&(?:#(\d{1,7});?|#[xX]([0-9a-fA-F]{1,6});?|([a-zA-Z]+);)/g,
      (whole, decimal?: string, hex?: string, name?: string) => {
        if (name !== undefined) return Object.hasOwn(entities, name) ? entities[name]! : whole;
        const code = decimal === undefined ? Number.parseInt(hex!, 16) : Number(decimal);
        return code > 0 && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff)
          ? String.fromCodePoint(code)
          : "\ufffd";
      },
    );
}

/** Python rounds halves to even; whole numbers stay whole. */
export function roundNumber(number: number, isFloat: boolean, args: Arguments): Value {
  const precision = args.integer(0, "precision", 0);
  const method = args.string(1, "method", "common");
  if (Math.abs(precision) > 100) throw templateError("round: the precision is out of range");
  if (method !== "common" && method !== "ceil" && method !== "floor")
    throw templateError("method must be common, ceil or floor");
  const scale = 10 ** precision;
  if (method !== "common") return new Float(Math[method](number * scale) / scale);
  const typed = (value: number): Value => (isFloat ? new Float(value) : value);
  if (!Number.isFinite(number) || (precision >= 0 && Number.isInteger(number))) return typed(number);
  if (precision >= 0) return typed(Number(fixedDecimals(number, precision)));
  const unit = 10 ** -precision;
  return typed(Number(fixedDecimals(number / unit, 0)) * unit);
}
