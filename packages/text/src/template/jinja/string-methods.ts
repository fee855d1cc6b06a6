import { type Arguments, callable } from "./arguments.js";
import { formatBraces } from "./formatting.js";
import { boundedText } from "./printing.js";
import { templateError } from "./template-error.js";
import { endWithoutSpace, isAllSpace, isSpaceAt, splitLines, skipSpace } from "./white-space.js";
import { type Callable, iterate, itemsOf, Tuple, typeName, type Value } from "./values.js";

type Method = (text: string, args: Arguments) => Value;

/** Python's string methods that templates use. Positions count code points. */
const methods: Readonly<Record<string, Method>> = {
  strip: (text, args) => strip(text, args.allow("chars").optionalString(0, "chars"), true, true),
  lstrip: (text, args) => strip(text, args.allow("chars").optionalString(0, "chars"), true, false),
  rstrip: (text, args) => strip(text, args.allow("chars").optionalString(0, "chars"), false, true),
  split: (text, args) => split(text, args.allow("sep", "maxsplit")),
  rsplit: (text, args) => splitFromRight(text, args.allow("sep", "maxsplit")),
  splitlines: (text, args) => {
    const keepEnds = args.allow("keepends").boolean(0, "keepends", false);
    return splitLines(text).map(({ line, end }) => (keepEnds ? line + end : line));
  },
  partition: (text, args) =>
    partition(text, args.string(0, "sep"), text.indexOf(args.string(0, "sep")), true),
  rpartition: (text, args) =>
    partition(text, args.string(0, "sep"), text.lastIndexOf(args.string(0, "sep")), false),
  startswith: (text, args) => affixes(args, "prefix").some((prefix) => text.startsWith(prefix)),
  endswith: (text, args) => affixes(args, "suffix").some((suffix) => text.endsWith(suffix)),
  removeprefix: (text, args) => {
    const prefix = args.string(0, "prefix");
    return text.startsWith(prefix) ? text.slice(prefix.length) : text;
  },
  removesuffix: (text, args) => {
    const suffix = args.string(0, "suffix");
    return suffix !== "" && text.endsWith(suffix) ? text.slice(0, -suffix.length) : text;
  },
  upper: (text) => text.toUpperCase(),
  lower: (text) => text.toLowerCase(),
  casefold: (text) => text.toLowerCase().replaceAll("\u00df", "ss"),
  title: (text) => titleCase(text),
  capitalize: (text) => capitalize(text),
  swapcase: (text) =>
    Array.from(text, (character) =>
      character === character.toUpperCase() ? character.toLowerCase() : character.toUpperCase(),
    ).join(""),
  replace: (text, args) =>
    replace(text, args.string(0, "old"), args.string(1, "new"), args.integer(2, "count", -1)),
  join: (text, args) => joinTexts(text, args.need(0, "iterable")),
  format: (text, args) => formatBraces(text, args.positional, args.named),
  find: (text, args) => codePointIndex(text, text.indexOf(args.string(0, "sub"))),
  rfind: (text, args) => codePointIndex(text, text.lastIndexOf(args.string(0, "sub"))),
  index: (text, args) => foundAt(text, text.indexOf(args.string(0, "sub"))),
  rindex: (text, args) => foundAt(text, text.lastIndexOf(args.string(0, "sub"))),
  count: (text, args) => {
    const part = args.string(0, "sub");
    return part === "" ? Array.from(text).length + 1 : text.split(part).length - 1;
  },
  isalpha: (text) => /^\p{L}+$/u.test(text),
  isalnum: (text) => /^[\p{L}\p{N}]+$/u.test(text),
  isdigit: (text) => /^[\p{Nd}²³¹⁰⁴-⁹₀-₉]+$/u.test(text),
  isdecimal: (text) => /^\p{Nd}+$/u.test(text),
  isnumeric: (text) => /^\p{N}+$/u.test(text),
  isspace: (text) => text !== "" && isAllSpace(text),
  isupper: (text) => /\p{Lu}/u.test(text) && !/[\p{Ll}\p{Lt}]/u.test(text),
  islower: (text) => /\p{Ll}/u.test(text) && !/[\p{Lu}\p{Lt}]/u.test(text),
  istitle: (text) => /\p{L}/u.test(text) && titleCase(text) === text,
  isidentifier: (text) => /^[\p{ID_Start}_]\p{ID_Continue}*$/u.test(text),
  isascii: (text) => !/[\u0080-\uffff]/.test(text),
  ljust: (text, args) => text + padding(text, args),
  rjust: (text, args) => padding(text, args) + text,
  center: (text, args) => {
    const pad = padding(text, args);
    const left =
      Math.floor(pad.length / 2) + (pad.length % 2 === 1 && args.integer(0, "width") % 2 === 1 ? 1 : 0);
    return pad.slice(0, left) + text + pad.slice(left);
  },
  zfill: (text, args) => {
    const missing = args.integer(0, "width") - Array.from(text).length;
    const sign = /^[+-]/.exec(text)?.[0] ?? "";
    return missing <= 0 ? text : boundedText(sign + repeatText("0", missing) + text.slice(sign.length));
  },
  expandtabs: (text, args) => expandTabs(text, args.integer(0, "tabsize", 8)),
};

/** A string's method bound to it, undefined when Python's strings (or this list) lack it. */
export function stringMethod(text: string, name: string): Callable | undefined {
  const method = Object.hasOwn(methods, name) ? methods[name] : undefined;
  if (method === undefined) return undefined;
  return callable(name, (args) => {
    const result = method(text, args);
    return typeof result === "string" ? boundedText(result) : result;
  });
}

export function repeatText(text: string, count: number): string {
  if (count <= 0) return "";
  if (text.length * count > 64 * 1024 * 1024) throw templateError("The template repeats a text too often.");
  return text.repeat(count);
}

/** Without the given characters (white space by default) at the ends that are asked for. */
export function strip(text: string, characters: string | undefined, left: boolean, right: boolean): string {
  if (characters === undefined) {
    const start = left ? skipSpace(text, 0) : 0;
    return text.slice(start, right ? Math.max(endWithoutSpace(text), start) : text.length);
  }
  const set = new Set(characters);
  const all = Array.from(text);
  let start = 0;
  let end = all.length;
  if (left) while (start < end && set.has(all[start]!)) start++;
  if (right) while (end > start && set.has(all[end - 1]!)) end--;
  return all.slice(start, end).join("");
}

function split(text: string, args: Arguments): Value[] {
  const separator = args.optionalString(0, "sep");
  const limit = args.integer(1, "maxsplit", -1);
  if (separator === undefined) return splitSpace(text, limit);
  if (separator === "") throw templateError("empty separator");
  const parts = text.split(separator);
  return limit < 0 || parts.length <= limit + 1
    ? parts
    : [...parts.slice(0, limit), parts.slice(limit).join(separator)];
}

function splitSpace(text: string, limit: number): string[] {
  const parts: string[] = [];
  for (let start = skipSpace(text, 0); start < text.length;) {
    if (limit >= 0 && parts.length >= limit) {
      parts.push(text.slice(start));
      break;
    }
    let end = start;
    while (end < text.length && !isSpaceAt(text, end)) end++;
    parts.push(text.slice(start, end));
    start = skipSpace(text, end);
  }
  return parts;
}

function splitFromRight(text: string, args: Arguments): Value[] {
  const separator = args.optionalString(0, "sep");
  const limit = args.integer(1, "maxsplit", -1);
  if (separator === undefined) {
    const reversed = splitSpace(Array.from(text).toReversed().join(""), limit);
    return reversed.map((part) => Array.from(part).toReversed().join("")).toReversed();
  }
  if (separator === "") throw templateError("empty separator");
  const parts = text.split(separator);
  if (limit < 0 || parts.length <= limit + 1) return parts;
  const kept = parts.length - limit;
  return [parts.slice(0, kept).join(separator), ...parts.slice(kept)];
}

function partition(text: string, separator: string, at: number, fromLeft: boolean): Tuple {
  if (separator === "") throw templateError("empty separator");
  if (at < 0) return new Tuple(fromLeft ? [text, "", ""] : ["", "", text]);
  return new Tuple([text.slice(0, at), separator, text.slice(at + separator.length)]);
}

function affixes(args: Arguments, name: string): readonly string[] {
  const value = args.need(0, name);
  const candidates = value instanceof Tuple ? value.items : [value];
  return candidates.map((candidate) => {
    if (typeof candidate !== "string")
      throw templateError(`'${name}' must be a string or a tuple of strings, not ${typeName(candidate)}`);
    return candidate;
  });
}

export function replace(text: string, from: string, to: string, count: number): string {
  if (count === 0) return text;
  if (count < 0 && from !== "") {
    const parts = text.split(from);
    if (text.length + parts.length * to.length > 64 * 1024 * 1024)
      throw templateError("The template builds too long a text.");
    return parts.join(to);
  }
  const pieces = from === "" ? ["", ...Array.from(text), ""] : text.split(from);
  const limit = count < 0 ? pieces.length - 1 : Math.min(count, pieces.length - 1);
  const head = pieces.slice(0, limit + 1).join(to);
  const tail = pieces.slice(limit + 1);
  return tail.length === 0 ? head : head + (from === "" ? tail.join("") : from + tail.join(from));
}

function joinTexts(separator: string, value: Value): string {
  const parts = (itemsOf(value) ?? iterate(value)).map((item, index) => {
    if (typeof item !== "string")
      throw templateError(`sequence item ${index}: expected str instance, ${typeName(item)} found`);
    return item;
  });
  return boundedText(parts.join(separator));
}

function titleCase(text: string): string {
  return text.replace(/\p{L}+/gu, (word) => capitalize(word));
}

export function capitalize(text: string): string {
  const first = text.codePointAt(0);
  if (first === undefined) return "";
  const head = String.fromCodePoint(first);
  return head.toUpperCase() + text.slice(head.length).toLowerCase();
}

function expandTabs(text: string, size: number): string {
  let column = 0;
  let result = "";
  for (const character of text) {
    const width = size <= 0 ? 0 : size - (column % size);
    if (character === "\t") result = boundedText(result + repeatText(" ", width));
    else result += character;
    column = character === "\n" || character === "\r" ? 0 : column + (character === "\t" ? width : 1);
  }
  return result;
}

function codePointIndex(text: string, at: number): number {
  return at < 0 ? -1 : Array.from(text.slice(0, at)).length;
}

function foundAt(text: string, at: number): number {
  if (at < 0) throw templateError("substring not found");
  return codePointIndex(text, at);
}

function padding(text: string, args: Arguments): string {
  const fill = args.string(1, "fillchar", " ");
  if (Array.from(fill).length !== 1)
    throw templateError("The fill character must be exactly one character long");
  return repeatText(fill, args.integer(0, "width") - Array.from(text).length);
}
