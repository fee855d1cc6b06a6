import type { Arguments } from "./arguments.js";
import { getItem } from "./attributes.js";
import { formatPercent } from "./formatting.js";
import { collectionFilters } from "./collection-filters.js";
import type { Filter } from "./filter.js";
import { boundedText, printed, toJson } from "./printing.js";
import { capitalize, replace, repeatText, strip, titleCase } from "./string-methods.js";
import { templateError } from "./template-error.js";
import {
  needDefined,
  Float,
  isTrue,
  itemsOf,
  numericValue,
  Tuple,
  typeName,
  Undefined,
  valueOr,
  type Value,
} from "./values.js";

/** Jinja's filters that chat templates use, with `tojson` as transformers defines it. */
const textAndNumberFilters: Readonly<Record<string, Filter>> = {
  tojson: (value, args) =>
    toJson(value, jsonOptions(args.allow("ensure_ascii", "indent", "separators", "sort_keys"))),
  safe: (value) => printed(value),
  string: (value) => printed(value),
  escape: escapeHtml,
  e: escapeHtml,
  forceescape: escapeHtml,
  default: withDefault,
  d: withDefault,
  upper: (value) => printed(value).toUpperCase(),
  lower: (value) => printed(value).toLowerCase(),
  title: (value) => titleCase(printed(value)),
  capitalize: (value) => capitalize(printed(value)),
  trim: (value, args) => strip(printed(value), args.optionalString(0, "chars"), true, true),
  replace: (value, args) => {
    const count = args.get(2, "count");
    return replace(
      printed(value),
      printed(args.need(0, "old")),
      printed(args.need(1, "new")),
      typeof count === "number" ? count : -1,
    );
  },
  indent: (value, args) => indent(printed(value), args.allow("width", "first", "blank")),
  center: (value, args) => {
    const text = printed(value);
    const missing = args.integer(0, "width", 80) - Array.from(text).length;
    return missing <= 0
      ? text
      : repeatText(" ", Math.floor(missing / 2)) + text + repeatText(" ", Math.ceil(missing / 2));
  },
  truncate: (value, args) => truncate(printed(value), args),
  wordcount: (value) => printed(value).match(/[\p{L}\p{N}_]+/gu)?.length ?? 0,
  urlencode: (value) => encodeURIComponent(printed(value)).replaceAll("%2F", "/"),
  format: (value, args) =>
    formatPercent(printed(value), args.named.size > 0 ? new Map(args.named) : new Tuple(args.positional)),
  int: (value, args) => {
    const number = parsedNumber(typeof value === "string" ? value.replaceAll("_", "") : value);
    return number === undefined ? valueOr(args.get(0, "default"), 0) : Math.trunc(number);
  },
  float: (value, args) => {
    const number = parsedNumber(value);
    return number === undefined ? valueOr(args.get(0, "default"), new Float(0)) : new Float(number);
  },
  abs: (value) => {
    const number = needNumber(value, "abs");
    return value instanceof Float ? new Float(Math.abs(number)) : Math.abs(number);
  },
  round: (value, args) => round(needNumber(value, "round"), args),
  attr: (value, args) => getItem(value, args.string(0, "name")),
};

const filters = new Map<string, Filter>(Object.entries({ ...textAndNumberFilters, ...collectionFilters }));

export function filterNamed(name: string): Filter {
  const filter = filters.get(name);
  if (filter === undefined) throw templateError(`No filter named '${name}'.`);
  return filter;
}

export function hasFilter(name: string): boolean {
  return filters.has(name);
}

function jsonOptions(args: Arguments): Parameters<typeof toJson>[1] {
  const indentation = args.get(1, "indent");
  const separators = args.get(2, "separators");
  const pair = separators === undefined || separators === null ? undefined : itemsOf(separators);
  if (
    pair !== undefined &&
    (pair.length !== 2 || typeof pair[0] !== "string" || typeof pair[1] !== "string")
  ) {
    throw templateError("tojson(): 'separators' must be two strings");
  }
  const indented =
    typeof indentation === "number"
      ? repeatText(" ", indentation)
      : typeof indentation === "string"
        ? indentation
        : undefined;
  return {
    indent: indented,
    ensureAscii: args.boolean(0, "ensure_ascii", false),
    itemSeparator: (pair?.[0] as string | undefined) ?? (indented === undefined ? ", " : ","),
    keySeparator: (pair?.[1] as string | undefined) ?? ": ",
    sortKeys: args.boolean(3, "sort_keys", false),
  };
}

function withDefault(value: Value, args: Arguments): Value {
  const fallback = valueOr(args.allow("default_value", "boolean").get(0, "default_value"), "");
  const alsoFalse = args.boolean(1, "boolean", false);
  return value instanceof Undefined || (alsoFalse && !isTrue(value)) ? fallback : value;
}

const htmlEscapes: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&#34;",
  "'": "&#39;",
};

function escapeHtml(value: Value): string {
  return printed(value).replace(/[&<>"']/g, (character) => htmlEscapes[character]!);
}

function indent(text: string, args: Arguments): string {
  const width = valueOr(args.get(0, "width"), 4);
  const prefix = typeof width === "string" ? width : repeatText(" ", numericValue(width) ?? 4);
  const indentFirst = args.boolean(1, "first", false);
  const indentBlank = args.boolean(2, "blank", false);
  const lines = text.split("\n");
  const indented = lines.map((line, index) =>
    (index === 0 && !indentFirst) || (index > 0 && line === "" && !indentBlank) ? line : prefix + line,
  );
  return boundedText(indented.join("\n"));
}

function truncate(text: string, args: Arguments): string {
  const length = args.integer(0, "length", 255);
  const killWords = args.boolean(1, "killwords", false);
  const end = args.string(2, "end", "...");
  const leeway = args.integer(3, "leeway", 5);
  const characters = Array.from(text);
  if (characters.length <= length + leeway) return text;
  const kept = characters.slice(0, Math.max(length - end.length, 0)).join("");
  if (killWords) return kept + end;
  const space = kept.lastIndexOf(" ");
  return (space < 0 ? kept : kept.slice(0, space)) + end;
}

/** A number, or a text that is one as Python's `float` reads it. */
function parsedNumber(value: Value): number | undefined {
  if (typeof value !== "string") return numericValue(value);
  return /^\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\s*$/.test(value) ? Number(value) : undefined;
}

function needNumber(value: Value, filter: string): number {
  const number = numericValue(needDefined(value));
  if (number === undefined) throw templateError(`${filter}: a number is required, not ${typeName(value)}`);
  return number;
}

/** Python rounds halves to even; the result of this filter is a float. */
function round(number: number, args: Arguments): Float {
  const precision = args.integer(0, "precision", 0);
  const method = args.string(1, "method", "common");
  if (Math.abs(precision) > 100) throw templateError("round: the precision is out of range");
  const scale = 10 ** precision;
  if (method === "ceil") return new Float(Math.ceil(number * scale) / scale);
  if (method === "floor") return new Float(Math.floor(number * scale) / scale);
  if (precision > 0) return new Float(Number(number.toFixed(precision)));
  const scaled = number * scale;
  const floor = Math.floor(scaled);
  const rounded = scaled - floor === 0.5 ? (floor % 2 === 0 ? floor : floor + 1) : Math.round(scaled);
  return new Float(rounded / scale);
}
