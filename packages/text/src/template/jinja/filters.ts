import type { Arguments } from "./arguments.js";
import { ownAttribute } from "./attributes.js";
import { formatPercent } from "./formatting.js";
import { collectionFilters } from "./collection-filters.js";
import type { Filter } from "./filter.js";
import { formatMarkup, toMarkup } from "./markup.js";
import { printed, toJson } from "./printing.js";
import { capitalize, replace, repeatText, strip } from "./string-methods.js";
import {
  attributesOf,
  callMethod,
  fileSize,
  indent,
  roundNumber,
  stripTags,
  titleWords,
  truncate,
  urlEncode,
} from "./text-filters.js";
import { templateError } from "./template-error.js";
import {
  needDefined,
  Float,
  isTrue,
  itemsOf,
  Markup,
  numericValue,
  Tuple,
  typeName,
  Undefined,
  valueOr,
  type Value,
} from "./values.js";

import { wordWrap } from "./word-wrap.js";

/** Jinja's filters that chat templates use, with `tojson` as transformers defines it. */
const textAndNumberFilters: Readonly<Record<string, Filter>> = {
  tojson: (value, args) =>
    toJson(value, jsonOptions(args.allow("ensure_ascii", "indent", "separators", "sort_keys"))),
  safe: (value) => (value instanceof Markup ? value : new Markup(printed(value))),
  string: (value) => (value instanceof Markup ? value : printed(value)),
  escape: toMarkup,
  e: toMarkup,
  forceescape: (value) => toMarkup(printed(value)),
  default: withDefault,
  d: withDefault,
  upper: (value) => printed(value).toUpperCase(),
  lower: (value) => printed(value).toLowerCase(),
  title: (value) => titleWords(printed(value)),
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
  indent: (value, args) => indent(needText(value, "indent"), args.allow("width", "first", "blank")),
  center: (value, args) => callMethod(printed(value), "center", [args.integer(0, "width", 80)]),
  truncate: (value, args) =>
    value instanceof Undefined ? value : truncate(needText(value, "truncate"), args),
  wordcount: (value) => printed(value).match(/[\p{L}\p{N}_]+/gu)?.length ?? 0,
  urlencode: urlEncode,
  striptags: stripTags,
  wordwrap: (value, args) => wordWrap(needText(value, "wordwrap"), args),
  xmlattr: attributesOf,
  filesizeformat: (value, args) => {
    const size = parsedNumber(value);
    if (size === undefined) throw templateError("filesizeformat: a number is required");
    return fileSize(size, args);
  },
  format: (value, args) => {
    const values = args.named.size > 0 ? new Map(args.named) : new Tuple(args.positional);
    return value instanceof Markup ? formatMarkup(value, values) : formatPercent(printed(value), values);
  },
  int: (value, args) => {
    needDefined(value);
    const number = parsedNumber(typeof value === "string" ? value.replaceAll("_", "") : value);
    return number === undefined ? valueOr(args.get(0, "default"), 0) : Math.trunc(number);
  },
  float: (value, args) => {
    const number = parsedNumber(needDefined(value));
    return number === undefined ? valueOr(args.get(0, "default"), new Float(0)) : new Float(number);
  },
  abs: (value) => {
    const number = needNumber(value, "abs");
    return value instanceof Float ? new Float(Math.abs(number)) : Math.abs(number);
  },
  round: (value, args) => roundNumber(needNumber(value, "round"), value instanceof Float, args),
  attr: (value, args) => ownAttribute(value, args.string(0, "name")),
};

/** Filters that look at markup themselves, and those whose text is markup again when they are given markup. */
const takingMarkup = new Set("safe string escape e default d format attr".split(" "));
const keepingMarkup = new Set("upper lower capitalize trim center indent reverse truncate".split(" "));

const withoutArguments = new Set(
  (
    "safe string escape e forceescape upper lower title capitalize wordcount urlencode abs length count list first last " +
    "reverse items striptags"
  ).split(" "),
);

function overMarkup(name: string, filter: Filter): Filter {
  return (value, args, context) => {
    if (withoutArguments.has(name)) args.allow();
    if (takingMarkup.has(name) || !(value instanceof Markup)) return filter(value, args, context);
    const result = filter(value.text, args, context);
    return keepingMarkup.has(name) && typeof result === "string" ? new Markup(result) : result;
  };
}

const filters = new Map<string, Filter>(
  Object.entries({ ...textAndNumberFilters, ...collectionFilters }).map(([name, filter]) => [
    name,
    overMarkup(name, filter),
  ]),
);

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
    typeof indentation === "number" || typeof indentation === "boolean"
      ? repeatText(" ", Number(indentation))
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

/** A number, or a text that is one as Python's `float` reads it. */
function parsedNumber(value: Value): number | undefined {
  if (typeof value !== "string") return numericValue(value);
  return /^\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\s*$/.test(value) ? Number(value) : undefined;
}

function needText(value: Value, filter: string): string {
  if (typeof value === "string") return value;
  throw templateError(`${filter}: a text is required, not ${typeName(needDefined(value))}`);
}

function needNumber(value: Value, filter: string): number {
  const number = numericValue(needDefined(value));
  if (number === undefined) throw templateError(`${filter}: a number is required, not ${typeName(value)}`);
  return number;
}
