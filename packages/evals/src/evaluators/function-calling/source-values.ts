import type { SourceType } from "../../cases/eval-case.js";

/** What the leaderboard's names of Java's and JavaScript's types are in JSON. */
const jsonTypeOf: Readonly<Record<string, string>> = {
  byte: "integer",
  short: "integer",
  integer: "integer",
  long: "integer",
  Bigint: "integer",
  float: "number",
  double: "number",
  boolean: "boolean",
  Boolean: "boolean",
  Array: "array",
  ArrayList: "array",
  array: "array",
  HashMap: "object",
  dict: "object",
};

/** The JSON schema of what `readSource` gives; text for types that it leaves as they are. */
export function sourceSchema({ type, itemType }: SourceType): Readonly<Record<string, unknown>> {
  const items = itemType === undefined ? {} : { items: sourceSchema({ language: "java", type: itemType }) };
  return { type: jsonTypeOf[type] ?? "string", ...items };
}

const scalars: Readonly<Record<SourceType["language"], Readonly<Record<string, RegExp>>>> = {
  java: {
    byte: /^-?\d+$/,
    short: /^-?\d+$/,
    integer: /^-?\d+$/,
    long: /^-?\d+(?=[lL]$)/,
    float: /^-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?=[fF]$)/,
    double: /^-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?$/,
  },
  javascript: { integer: /^-?\d+$/, float: /^-?\d+(?:\.\d+)?$/, Bigint: /^-?\d+(?=n$)/ },
};

/**
 * The value that source text of Java or JavaScript stands for, as the leaderboard reads it: `12L` is a `long`, `1.5f` a
 * `float`, `new ArrayList<>(Arrays.asList("a"))` a list. What is not of the type stays text, as the name of a variable does.
 */
export function readSource(source: string, { language, type, itemType }: SourceType): unknown {
  const number = scalars[language][type]?.exec(source);
  if (number !== undefined) return number === null ? source : Number(number[0]);
  if (type === "boolean" || type === "Boolean")
    return source === "true" || source === "false" ? source === "true" : source;
  if (language === "javascript" && type === "String") return unquoted(source) ?? source;
  const item = (text: string): unknown =>
    itemType === undefined ? literal(text, language) : (itemOf(text, language, itemType) ?? text);
  const text = source.trim();
  if (type === "array") return jsList(text)?.map(item) ?? source;
  if (type === "dict") return jsObject(text) ?? source;
  if (type === "Array" || type === "ArrayList") return javaList(text, type)?.map(item) ?? source;
  if (type === "HashMap") return javaMap(text) ?? source;
  return source;
}

function itemOf(text: string, language: SourceType["language"], type: string): unknown {
  if (type === "String" || type === "char" || type === "any") return unquoted(text) ?? text;
  const nested = language === "javascript" ? jsList(text) : undefined;
  return nested?.map((part) => literal(part, language)) ?? readSource(text, { language, type });
}

/** A value whose type nothing says. */
function literal(text: string, language: SourceType["language"]): unknown {
  if (text === "true" || text === "false") return text === "true";
  const quoted = unquoted(text);
  if (quoted !== undefined) return quoted;
  if (language === "javascript") {
    const nested = jsList(text)?.map((part) => literal(part, language)) ?? jsObject(text);
    if (nested !== undefined) return nested;
  }
  const number = language === "java" ? text.replace(/(?<=\d)[lLfF]$/, "") : text;
  return /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/.test(number) ? Number(number) : text;
}

function unquoted(text: string): string | undefined {
  return text.length > 1 && (text[0] === '"' || text[0] === "'") && text.endsWith(text[0])
    ? text.slice(1, -1)
    : undefined;
}

/** The inside of `open ... close` around the whole text. */
function inside(text: string, open: RegExp, close: string): string | undefined {
  const start = open.exec(text)?.[0];
  return start !== undefined && text.endsWith(close) && text.length >= start.length + close.length
    ? text.slice(start.length, text.length - close.length)
    : undefined;
}

function jsList(text: string): readonly string[] | undefined {
  const items = inside(text, /^\[/, "]") ?? inside(text, /^new\s+Array\(/, ")");
  return items === undefined ? undefined : parts(items, ",");
}

function jsObject(text: string): Readonly<Record<string, unknown>> | undefined {
  const fields = inside(text, /^\{/, "}");
  if (fields === undefined) return undefined;
  const entries = parts(fields, ",").map((field): [string, unknown] | undefined => {
    const [name, ...rest] = parts(field, ":");
    return name === undefined || rest.length === 0
      ? undefined
      : [unquoted(name) ?? name, literal(rest.join(":"), "javascript")];
  });
  return entries.every((entry) => entry !== undefined) ? Object.fromEntries(entries) : undefined;
}

function javaList(text: string, type: "Array" | "ArrayList"): readonly string[] | undefined {
  if (type === "Array") {
    const items = inside(text, /^new\s+\w+\s*\[\]\s*\{/, "}");
    return items === undefined ? undefined : parts(items, ",");
  }
  const listed = inside(text, /^new\s+ArrayList<\w*>\(\s*(?:Arrays\.asList|List\.of)\(/, "))");
  if (listed !== undefined) return parts(listed, ",");
  const added = inside(text, /^new\s+ArrayList<\w*>\(\)\s*\{\{/, "}}");
  if (added !== undefined) return parts(added, ";").flatMap((call) => inside(call, /^add\(/, ")") ?? []);
  return /^new\s+ArrayList<\w*>\(\)$/.test(text) ? [] : undefined;
}

function javaMap(text: string): Readonly<Record<string, unknown>> | undefined {
  const puts = inside(text, /^new\s+HashMap<[^(]*>\s*\(\)\s*\{\{/, "}}");
  if (puts === undefined) return /^new\s+HashMap<[^(]*>\s*\(\)$/.test(text) ? {} : undefined;
  const entries = parts(puts, ";").flatMap((call): [string, unknown][] => {
    const [key, ...value] = parts(inside(call, /^put\(/, ")") ?? "", ",");
    return key === undefined || value.length === 0
      ? []
      : [[unquoted(key) ?? key, literal(value.join(","), "java")]];
  });
  return Object.fromEntries(entries);
}

/** What stands between separators that are in no quotes and no brackets, trimmed; empty parts are left out. */
function parts(text: string, separator: string): readonly string[] {
  const found: string[] = [];
  let depth = 0;
  let quote = "";
  let start = 0;
  for (let at = 0; at <= text.length; at++) {
    const character = text[at] ?? separator;
    if (quote !== "") {
      if (character === "\\") at++;
      else if (character === quote) quote = "";
      if (at < text.length) continue;
    }
    if (character === '"' || character === "'") quote = character;
    else if ("([{".includes(character)) depth++;
    else if (")]}".includes(character)) depth--;
    else if (character === separator && (depth === 0 || at >= text.length)) {
      const part = text.slice(start, at).trim();
      if (part !== "") found.push(part);
      start = at + 1;
    }
  }
  return found;
}
