import { formatPercent } from "./formatting.js";
import { printed } from "./printing.js";
import { stringMethod } from "./string-methods.js";
import { Callable, Markup, numericValue, Tuple, type Value } from "./values.js";

const htmlEscapes: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&#34;",
  "'": "&#39;",
};

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => htmlEscapes[character]!);
}

/** A value's text as HTML: escaped, unless it is markup already. */
export function toMarkup(value: Value): Markup {
  return value instanceof Markup ? value : new Markup(escaped(printed(value)));
}

/** What stands in markup for a value that is formatted into it: numbers as they are, for `%d`. */
function escapedArgument(value: Value): Value {
  return value === null || numericValue(value) !== undefined ? value : toMarkup(value).text;
}

/** `markup % values`: the values are escaped. */
export function formatMarkup(format: Markup, value: Value): Markup {
  const values =
    value instanceof Tuple
      ? new Tuple(value.items.map(escapedArgument))
      : value instanceof Map
        ? new Map([...value].map(([key, item]) => [key, escapedArgument(item)]))
        : escapedArgument(value);
  return new Markup(formatPercent(format.text, values));
}

/** Methods whose texts are markup again, with the place of the argument that they escape. */
const methods = new Map<string, number | "all" | undefined>([
  ...(
    "capitalize title lower upper strip lstrip rstrip expandtabs swapcase zfill casefold removeprefix removesuffix " +
    "split rsplit splitlines partition rpartition"
  )
    .split(" ")
    .map((name) => [name, undefined] as const),
  ["replace", 1],
  ["ljust", 1],
  ["rjust", 1],
  ["center", 1],
  ["join", "all"],
  ["format", "all"],
]);

/** A method of markup, undefined when texts have none of this name. */
export function markupMethod({ text }: Markup, name: string): Callable | undefined {
  const method = stringMethod(text, name);
  if (method === undefined || !methods.has(name)) return method;
  const escapes = methods.get(name);
  const change = (value: Value): Value =>
    Array.isArray(value) ? value.map(escapedArgument) : escapedArgument(value);
  return new Callable(name, (positional, named) => {
    const given = positional.map((value, index) =>
      escapes === "all" || escapes === index ? change(value) : value,
    );
    const givenNamed = new Map(
      [...named].map(([key, value]) => [key, escapes === "all" ? change(value) : value]),
    );
    return asMarkup(method.call(given, givenNamed));
  });
}

function asMarkup(value: Value): Value {
  if (typeof value === "string") return new Markup(value);
  if (Array.isArray(value)) return value.map(asMarkup);
  return value instanceof Tuple ? new Tuple(value.items.map(asMarkup)) : value;
}
