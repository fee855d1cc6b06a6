import { boundedText, represent, printed } from "./printing.js";
import { templateError } from "./template-error.js";
import {
  Float,
  Namespace,
  numericValue,
  Tuple,
  typeName,
  Undefined,
  type NamedValues,
  type Value,
} from "./values.js";

const maxWidth = 10_000;

/** Python's `%` formatting: %s %r %d %i %f %e %g %x %X %o %c %%, with names, flags, width and precision. */
export function formatPercent(format: string, value: Value): string {
  const items = value instanceof Tuple ? value.items : [value];
  let used = 0;
  const result = format.replace(
    /%(?:\((\w+)\))?([-+ 0#]*)(\d+)?(?:\.(\d+))?([a-zA-Z%])/g,
    (
      _,
      name: string | undefined,
      flags: string,
      width: string | undefined,
      precision: string | undefined,
      kind: string,
    ) => {
      if (kind === "%") return "%";
      let item: Value | undefined;
      if (name !== undefined) {
        if (!(value instanceof Map)) throw templateError("format requires a mapping");
        item = value.get(name);
      } else item = items[used++];
      if (item === undefined) throw templateError("not enough arguments for format string");
      const body = formatOne(
        item,
        kind,
        precision === undefined ? undefined : bounded(precision),
        flags.includes("+"),
      );
      return pad(
        body,
        bounded(width ?? "0"),
        flags.includes("-") ? "<" : ">",
        flags.includes("0") && kind !== "s" && kind !== "r" ? "0" : " ",
      );
    },
  );
  // Python lets anything that can be looked into be left over
  const isLookup = value instanceof Map || Array.isArray(value) || value instanceof Undefined;
  if (used < items.length && !isLookup)
    throw templateError("not all arguments converted during string formatting");
  return boundedText(result);
}

function bounded(digits: string): number {
  const number = Number(digits);
  if (number > maxWidth) throw templateError(`A format width or precision of ${digits} is too large.`);
  return number;
}

function formatOne(value: Value, kind: string, precision: number | undefined, signed: boolean): string {
  if (kind === "s" || kind === "r") {
    const text = kind === "s" ? printed(value) : represent(value);
    return precision === undefined ? text : Array.from(text).slice(0, precision).join("");
  }
  if (kind === "c") return typeof value === "number" ? String.fromCodePoint(value) : printed(value);
  const number = numericValue(value);
  if (number === undefined)
    throw templateError(`%${kind} format: a real number is required, not ${typeName(value)}`);
  const sign = number < 0 ? "-" : signed ? "+" : "";
  return sign + formatNumber(Math.abs(number), kind, precision);
}

/** What `toFixed` gives at most; a half has fewer, so that it shows. */
const maxDigits = 100;

/** `toFixed`, with exact halves rounded to even, as Python has it. */
export function fixedDecimals(number: number, digits: number): string {
  if (!Number.isFinite(number)) return Number.isNaN(number) ? "nan" : number > 0 ? "inf" : "-inf";
  if (Math.abs(number) >= 1e21) return BigInt(number) + (digits > 0 ? `.${"0".repeat(digits)}` : "");
  const rounded = number.toFixed(digits);
  const exact = number.toFixed(maxDigits);
  const rest = exact.slice(exact.indexOf(".") + 1 + digits);
  if (!/^50*$/.test(rest) || /[02468]$/.test(rounded)) return rounded;
  const cut = exact.slice(0, exact.indexOf(".") + 1 + digits);
  return digits === 0 ? cut.slice(0, -1) : cut;
}

function formatNumber(number: number, kind: string, precision: number | undefined): string {
  const whole = Math.trunc(number);
  switch (kind) {
    case "d":
    case "i":
    case "u":
      return String(whole);
    case "x":
      return whole.toString(16);
    case "X":
      return whole.toString(16).toUpperCase();
    case "o":
      return whole.toString(8);
    case "b":
      return whole.toString(2);
    case "f":
    case "F":
      return fixedDecimals(number, Math.min(precision ?? 6, maxDigits));
    case "e":
    case "E": {
      const text = number
        .toExponential(Math.min(precision ?? 6, maxDigits))
        .replace(/e([+-])(\d)$/, "e$10$2");
      return kind === "E" ? text.toUpperCase() : text;
    }
    case "g":
    case "G": {
      const digits = Math.max(precision ?? 6, 1);
      const exponent = number === 0 ? 0 : Math.floor(Math.log10(number));
      if (exponent < -4 || exponent >= digits)
        return number
          .toExponential(digits - 1)
          .replace(/\.?0+e/, "e")
          .replace(/e([+-])(\d)$/, "e$10$2");
      const fixed = number.toFixed(Math.min(Math.max(digits - 1 - exponent, 0), 100));
      return fixed.includes(".") ? fixed.replace(/\.?0+$/, "") : fixed;
    }
    default:
      throw templateError(`unsupported format character '${kind}'`);
  }
}

function pad(text: string, width: number, align: string, fill: string): string {
  const missing = width - Array.from(text).length;
  if (missing <= 0) return text;
  if (align === "<") return text + fill.repeat(missing);
  if (align === "^") return fill.repeat(Math.floor(missing / 2)) + text + fill.repeat(Math.ceil(missing / 2));
  const sign = fill === "0" ? (/^[+-]/.exec(text)?.[0] ?? "") : "";
  return sign + fill.repeat(missing) + text.slice(sign.length);
}

/** `str.format`: `{}`, `{0}`, `{name}`, one level of `.attribute` or `[key]`, `!r`, `!s` and simple format specs. */
export function formatBraces(format: string, positional: readonly Value[], named: NamedValues): string {
  let automatic = 0;
  const result = format.replace(
    /\{\{|\}\}|\{([^{}!:.[\]]*)((?:\.\w+|\[[^\]]*\])*)(?:!([rs]))?(?::([^{}]*))?\}|[{}]/g,
    (
      whole,
      field: string | undefined,
      path: string | undefined,
      conversion: string | undefined,
      spec: string | undefined,
    ) => {
      if (whole === "{{") return "{";
      if (whole === "}}") return "}";
      if (field === undefined) throw templateError(`Single '${whole}' encountered in format string`);
      const index = field === "" ? automatic++ : /^\d+$/.test(field) ? Number(field) : undefined;
      const root = index === undefined ? named.get(field) : positional[index];
      if (root === undefined) throw templateError(`str.format: no argument for '${whole}'`);
      const value = [...(path ?? "").matchAll(/\.(\w+)|\[([^\]]*)\]/g)].reduce<Value>(
        (object, [, attribute, key]) => member(object, attribute ?? key ?? ""),
        root,
      );
      return formatSpec(
        conversion === "r" ? represent(value) : conversion === "s" ? printed(value) : value,
        spec ?? "",
      );
    },
  );
  return boundedText(result);
}

function member(object: Value, key: string): Value {
  if (key.startsWith("_")) throw templateError(`access to attribute '${key}' is unsafe.`);
  const value =
    object instanceof Map
      ? object.get(key)
      : object instanceof Namespace
        ? object.attributes.get(key)
        : Array.isArray(object)
          ? object[Number(key)]
          : undefined;
  if (value === undefined) throw templateError(`str.format: no '${key}' in a ${typeName(object)}`);
  return value;
}

function formatSpec(value: Value, spec: string): string {
  if (spec === "") return printed(value);
  const parts = /^(?:(.)?([<>^]))?([+])?(0)?(\d+)?(,)?(?:\.(\d+))?([a-zA-Z%])?$/su.exec(spec);
  if (parts === null) throw templateError(`Invalid format specifier '${spec}'`);
  const [, fill, align, plus, zero, width, comma, precision, kind] = parts;
  const number = numericValue(value);
  const digits = precision === undefined ? undefined : bounded(precision);
  let body: string;
  if (kind === "%") body = `${formatOne(new Float((number ?? NaN) * 100), "f", digits, plus !== undefined)}%`;
  else if (kind !== undefined && kind !== "s") body = formatOne(value, kind, digits, plus !== undefined);
  else if (number !== undefined && digits !== undefined)
    body = formatOne(value, "g", digits, plus !== undefined);
  else
    body =
      (plus !== undefined && number !== undefined && number >= 0 ? "+" : "") +
      (digits === undefined ? printed(value) : Array.from(printed(value)).slice(0, digits).join(""));
  if (comma !== undefined)
    body = body.replace(
      /^([+-]?)(\d+)/,
      (_, sign: string, whole: string) => sign + whole.replace(/\B(?=(?:\d{3})+$)/g, ","),
    );
  return pad(
    body,
    bounded(width ?? "0"),
    align ?? (number === undefined ? "<" : ">"),
    fill ?? (zero === undefined ? " " : "0"),
  );
}
