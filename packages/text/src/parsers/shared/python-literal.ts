import { type Input, isSpace, takeSpace, type Waiting } from "./input.js";
import { escapeUnit, jsonNumber } from "./json-text.js";
import { readCommaSeparated } from "./comma-separated.js";

const maxDepth = 64;
const words: Readonly<Record<string, string>> = {
  True: "true",
  False: "false",
  None: "null",
  true: "true",
  false: "false",
  null: "null",
};
const simpleEscapes: Readonly<Record<string, string>> = {
  n: "\n",
  t: "\t",
  r: "\r",
  b: "\b",
  f: "\f",
  v: "\v",
  a: "\x07",
  "0": "\0",
  "\\": "\\",
  "'": "'",
  '"': '"',
  "\n": "",
};
const hexLengths: Readonly<Record<string, number>> = { x: 2, u: 4, U: 8 };

/**
 * Reads one literal of Python's grammar (strings, numbers, True, False, None, lists, tuples, dictionaries; also JSON's
 * lower-case words) and streams it as JSON. Returns the problem, if there is one; the text that could not be read stays
 * unread.
 */
export function* pythonLiteral(
  input: Input,
  onJson: (text: string) => void,
  depth = 0,
): Waiting<string | undefined> {
  yield* takeSpace(input);
  const unit = yield* input.peek();
  if (unit === "") return "it ends before it is complete";
  if (unit === "'" || unit === '"') {
    yield* input.next();
    return yield* pythonString(input, unit, onJson);
  }
  if (depth >= maxDepth && "[({".includes(unit)) return `it is nested deeper than ${maxDepth} levels`;
  if (unit === "[" || unit === "(") return yield* pythonList(input, unit === "[" ? "]" : ")", onJson, depth);
  if (unit === "{") return yield* pythonDictionary(input, onJson, depth);
  return yield* pythonWord(input, onJson);
}

/** A tool or argument name; "" when there is none. */
export function* pythonName(input: Input): Waiting<string> {
  let name = "";
  while (name.length < 256) {
    const unit = yield* input.peek();
    if (!/[\p{L}\p{N}_.:/-]/u.test(unit)) break;
    name += yield* input.next();
  }
  return name;
}

function* pythonString(
  input: Input,
  quote: string,
  onJson: (text: string) => void,
): Waiting<string | undefined> {
  onJson('"');
  for (;;) {
    const unit = yield* input.next();
    if (unit === "") return "a string is not closed";
    if (unit === quote) break;
    if (unit === "\\") yield* pythonEscape(input, onJson);
    else onJson(escapeUnit(unit));
  }
  onJson('"');
  return undefined;
}

/** Unknown escapes keep their backslash, as in Python. */
function* pythonEscape(input: Input, onJson: (text: string) => void): Waiting {
  const unit = yield* input.next();
  const simple = simpleEscapes[unit];
  if (simple !== undefined) {
    for (const character of simple) onJson(escapeUnit(character));
    return;
  }
  const length = hexLengths[unit];
  if (length === undefined) {
    onJson(`\\\\${unit === "" ? "" : escapeUnit(unit)}`);
    return;
  }
  let digits = "";
  while (digits.length < length && /[0-9a-fA-F]/.test(yield* input.peek())) digits += yield* input.next();
  const code = Number.parseInt(digits, 16);
  const isCharacter = digits.length === length && code <= 0x10_ffff;
  const text = isCharacter ? String.fromCodePoint(code) : `\\${unit}${digits}`;
  onJson(JSON.stringify(text).slice(1, -1));
}

function* pythonWord(input: Input, onJson: (text: string) => void): Waiting<string | undefined> {
  let text = "";
  for (let unit = yield* input.peek(); /[\w.+-]/.test(unit) && text.length < 400; unit = yield* input.peek())
    text += yield* input.next();
  const word = Object.hasOwn(words, text) ? words[text] : undefined;
  const digits = text.replaceAll("_", "");
  if (word !== undefined) onJson(word);
  else if (jsonNumber.test(digits)) onJson(digits);
  else if (/^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/.test(digits) && Number.isFinite(Number(digits)))
    onJson(String(Number(digits)));
  else {
    input.unread(text);
    return `${JSON.stringify(text === "" ? yield* input.peek() : text.slice(0, 32))} is not a value`;
  }
  return undefined;
}

function* pythonList(
  input: Input,
  close: string,
  onJson: (text: string) => void,
  depth: number,
): Waiting<string | undefined> {
  yield* input.next();
  const readItem = (lead: string): Waiting<string | undefined> => {
    onJson(lead);
    return pythonLiteral(input, onJson, depth + 1);
  };
  return yield* readCommaSeparated(input, onJson, { close, json: "[]" }, readItem, (unit) =>
    expected(`, or ${close}`, unit),
  );
}

function* pythonDictionary(
  input: Input,
  onJson: (text: string) => void,
  depth: number,
): Waiting<string | undefined> {
  yield* input.next();
  function* readMember(lead: string): Waiting<string | undefined> {
    const start = yield* input.peek();
    if (start !== "'" && start !== '"') return expected("a key in quotes", start);
    onJson(lead);
    yield* input.next();
    const keyProblem = yield* pythonString(input, start, onJson);
    if (keyProblem !== undefined) return keyProblem;
    yield* takeSpace(input);
    const colon = yield* input.peek();
    if (colon !== ":") return expected(":", colon);
    yield* input.next();
    onJson(": ");
    return yield* pythonLiteral(input, onJson, depth + 1);
  }
  return yield* readCommaSeparated(input, onJson, { close: "}", json: "{}" }, readMember, (unit) =>
    expected(", or }", unit),
  );
}

function expected(what: string, unit: string): string {
  return unit === "" || isSpace(unit)
    ? "it ends before it is complete"
    : `${JSON.stringify(unit)} stands where ${what} is expected`;
}
