import { type Arguments, callable } from "./arguments.js";
import { printed } from "./printing.js";
import { strftime } from "./strftime.js";
import { templateError } from "./template-error.js";
import { spend } from "../../work.js";
import { listWork } from "../template-work.js";
import {
  Callable,
  needDefined,
  dictSet,
  iterate,
  itemsOf,
  Namespace,
  numericValue,
  typeName,
  type Dict,
  type NamedValues,
  type Value,
} from "./values.js";

/** Longest range, as in Jinja's sandbox. */
const maxRange = 100_000;

/** The functions that transformers gives to templates. `now` is what `strftime_now` prints. */
export function createGlobals(now: () => Date): Map<string, Value> {
  const functions: Readonly<Record<string, (args: Arguments) => Value>> = {
    range: (args) => range(args),
    dict: (args) => dict(args.positional, args.named),
    namespace: (args) => namespace(args.positional, args.named),
    raise_exception: (args) => {
      throw templateError(printed(args.need(0, "message")));
    },
    strftime_now: (args) => strftime(now(), args.string(0, "format")),
    joiner: (args) => joiner(args.string(0, "sep", ", ")),
    cycler: (args) => cycler(args.positional),
  };
  return new Map(Object.entries(functions).map(([name, call]) => [name, callable(name, call)]));
}

function range(args: Arguments): Value {
  const numbers = args.positional.map((value) => {
    const number = numericValue(needDefined(value));
    if (number === undefined || !Number.isInteger(number))
      throw templateError(`'${typeName(value)}' object cannot be interpreted as an integer`);
    return number;
  });
  const [first, second, step = 1] = numbers;
  if (first === undefined) throw templateError("range expected at least 1 argument, got 0");
  const [start, stop] = second === undefined ? [0, first] : [first, second];
  if (step === 0) throw templateError("range() arg 3 must not be zero");
  const length = Math.max(0, Math.ceil((stop - start) / step));
  if (length > maxRange)
    throw templateError(`Range too big. The sandbox blocks ranges larger than MAX_RANGE (${maxRange}).`);
  spend(listWork(length));
  return Array.from({ length }, (_, index) => start + index * step);
}

function dict(positional: readonly Value[], named: NamedValues): Dict {
  const result: Dict = new Map();
  const [source] = positional;
  if (source instanceof Map) for (const [key, value] of source) result.set(key, value);
  else if (source !== undefined) {
    for (const pair of iterate(source)) {
      const [key, value] = itemsOf(pair) ?? [];
      if (key === undefined || value === undefined)
        throw templateError("dict() needs pairs of a key and a value");
      dictSet(result, key, value);
    }
  }
  for (const [key, value] of named) result.set(key, value);
  return result;
}

function namespace(positional: readonly Value[], named: NamedValues): Namespace {
  const attributes = new Map<string, Value>();
  for (const [key, value] of dict(positional, named)) {
    const name = String(key);
    if (name.startsWith("_"))
      throw templateError(
        `Chat templates cannot store underscore-prefixed attributes on a namespace, but got '${name}'.`,
      );
    attributes.set(name, value);
  }
  return new Namespace(attributes);
}

/** Prints nothing the first time it is called, then its separator. */
function joiner(separator: string): Callable {
  let isFirst = true;
  return new Callable("joiner", () => {
    const text = isFirst ? "" : separator;
    isFirst = false;
    return text;
  });
}

function cycler(items: readonly Value[]): Namespace {
  if (items.length === 0) throw templateError("at least one item has to be provided");
  let at = 0;
  const attributes = new Map<string, Value>([["current", items[0]!]]);
  const move = (index: number): void => {
    at = index % items.length;
    attributes.set("current", items[at]!);
  };
  const next = new Callable("next", () => {
    const value = items[at]!;
    move(at + 1);
    return value;
  });
  const reset = new Callable("reset", () => {
    move(0);
    return null;
  });
  attributes.set("next", next).set("reset", reset);
  return new Namespace(attributes);
}
