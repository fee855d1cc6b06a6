import { templateError } from "./template-error.js";
import { spend } from "../../work.js";
import { textWork } from "../template-work.js";
import {
  Callable,
  Float,
  ItemStream,
  itemsOf,
  Loop,
  Markup,
  Namespace,
  Tuple,
  typeName,
  Undefined,
  type Value,
} from "./values.js";

/** Longest text a template may build, in UTF-16 units. */
export const maxTextLength = 64 * 1024 * 1024;

/** Passes a text on, or fails when it is longer than a template may build. */
export function boundedText(text: string): string {
  if (text.length > maxTextLength)
    throw templateError(`The template builds a text of more than ${maxTextLength} characters.`);
  return text;
}

/** Python's `str(value)`; undefined is nothing. */
export function printed(value: Value): string {
  if (typeof value === "string") return value;
  if (value instanceof Markup) return value.text;
  return value instanceof Undefined ? "" : represent(value);
}

const maxDepth = 256;

/** Python's `repr(value)`. */
export function represent(value: Value, depth = 0): string {
  spend(typeof value === "string" ? 1 + textWork(value) : 1);
  if (depth > maxDepth) throw templateError("The template prints a value that is nested too deeply.");
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value === "number") return integerText(value);
  if (typeof value === "string") return quoted(value);
  if (value instanceof Markup) return `Markup(${quoted(value.text)})`;
  if (value instanceof Float) return floatText(value.value);
  if (value instanceof Undefined) return "Undefined";
  if (value instanceof Map) {
    const entries = [...value].map(([key, item]) => `${represent(key)}: ${represent(item, depth + 1)}`);
    return boundedText(`{${entries.join(", ")}}`);
  }
  const items = itemsOf(value);
  if (items !== undefined) {
    const inner = boundedText(items.map((item) => represent(item, depth + 1)).join(", "));
    if (!(value instanceof Tuple)) return `[${inner}]`;
    return items.length === 1 ? `(${inner},)` : `(${inner})`;
  }
  if (value instanceof Namespace) return `<Namespace ${represent(new Map(value.attributes))}>`;
  if (value instanceof ItemStream) return "<generator object>";
  if (value instanceof Callable) return `<function ${value.name}>`;
  return value instanceof Loop ? "<LoopContext>" : "";
}

function integerText(value: number): string {
  return Number.isSafeInteger(value) ? String(value) : BigInt(value).toString();
}

/** Python's `repr` of a float: shortest digits, an exponent outside 1e-4..1e16. */
function floatText(value: number): string {
  if (Number.isNaN(value)) return "nan";
  if (!Number.isFinite(value)) return value > 0 ? "inf" : "-inf";
  if (value === 0) return Object.is(value, -0) ? "-0.0" : "0.0";
  const [mantissa, exponentText] = value.toExponential().split("e") as [string, string];
  const exponent = Number(exponentText);
  if (exponent < -4 || exponent >= 16) {
    return `${mantissa}e${exponent < 0 ? "-" : "+"}${String(Math.abs(exponent)).padStart(2, "0")}`;
  }
  const plain =
    exponent < 0
      ? value.toFixed(Math.max(mantissa.replace(/[-.]/g, "").length - 1 - exponent, 1))
      : plainDigits(mantissa, exponent);
  return plain.includes(".") ? plain : `${plain}.0`;
}

function plainDigits(mantissa: string, exponent: number): string {
  const sign = mantissa.startsWith("-") ? "-" : "";
  const digits = mantissa.replace(/[-.]/g, "");
  const whole = digits.slice(0, exponent + 1).padEnd(exponent + 1, "0");
  const fraction = digits.slice(exponent + 1);
  return sign + whole + (fraction === "" ? "" : `.${fraction}`);
}

const shortEscapes: Readonly<Record<string, string>> = {
  "\n": "\\n",
  "\r": "\\r",
  "\t": "\\t",
  "\\": "\\\\",
};

function quoted(text: string): string {
  const quote = text.includes("'") && !text.includes('"') ? '"' : "'";
  const body = text.replace(/[\\\p{C}\p{Z}'"]/gu, (character) => {
    if (character === " ") return character;
    if (character === "'" || character === '"') return character === quote ? `\\${character}` : character;
    const short = Object.hasOwn(shortEscapes, character) ? shortEscapes[character] : undefined;
    if (short !== undefined) return short;
    const code = character.codePointAt(0)!;
    if (code <= 0xff) return `\\x${code.toString(16).padStart(2, "0")}`;
    return code <= 0xffff
      ? `\\u${code.toString(16).padStart(4, "0")}`
      : `\\U${code.toString(16).padStart(8, "0")}`;
  });
  return quote + body + quote;
}

interface JsonOptions {
  readonly indent: string | undefined;
  readonly ensureAscii: boolean;
  readonly itemSeparator: string;
  readonly keySeparator: string;
  readonly sortKeys: boolean;
}

/** Python's `json.dumps`, as transformers' `tojson` filter calls it. */
export function toJson(value: Value, options: JsonOptions, depth = 0): string {
  spend(typeof value === "string" ? 1 + textWork(value) : 1);
  if (depth > maxDepth) throw templateError("tojson: the value is nested too deeply.");
  if (value === null) return "null";
  if (typeof value === "boolean") return String(value);
  if (typeof value === "number") return integerText(value);
  if (typeof value === "string") return jsonString(value, options.ensureAscii);
  if (value instanceof Markup) return jsonString(value.text, options.ensureAscii);
  if (value instanceof Float) {
    if (Number.isFinite(value.value)) return floatText(value.value);
    return Number.isNaN(value.value) ? "NaN" : value.value > 0 ? "Infinity" : "-Infinity";
  }
  const items = itemsOf(value);
  if (items !== undefined)
    return wrapJson(
      "[",
      items.map((item) => toJson(item, options, depth + 1)),
      "]",
      options,
      depth,
    );
  if (!(value instanceof Map))
    throw templateError(`Object of type ${typeName(value)} is not JSON serializable`);
  const entries = [...value];
  if (options.sortKeys) entries.sort(([left], [right]) => (String(left) < String(right) ? -1 : 1));
  const parts = entries.map(([key, item]) => {
    const name = typeof key === "string" ? key : key === null ? "null" : String(key);
    return jsonString(name, options.ensureAscii) + options.keySeparator + toJson(item, options, depth + 1);
  });
  return wrapJson("{", parts, "}", options, depth);
}

function wrapJson(
  open: string,
  parts: readonly string[],
  close: string,
  { indent, itemSeparator }: JsonOptions,
  depth: number,
): string {
  if (parts.length === 0) return open + close;
  if (indent === undefined) return boundedText(open + parts.join(itemSeparator) + close);
  const inner = `\n${indent.repeat(depth + 1)}`;
  return boundedText(`${open}${inner}${parts.join(itemSeparator + inner)}\n${indent.repeat(depth)}${close}`);
}

function jsonString(text: string, ensureAscii: boolean): string {
  const json = JSON.stringify(text);
  if (!ensureAscii) return json;
  return json.replace(/[\u007f-\uffff]/g, (unit) =>
    unit === "\u007f" ? unit : `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
