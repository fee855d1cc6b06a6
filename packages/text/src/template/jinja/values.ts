import { templateError } from "./template-error.js";
import { spend } from "../../work.js";
import { listWork, textWork } from "../template-work.js";

/**
 * Template values as Python has them: None, bool, int (a JavaScript number), float (a wrapper, so that 1.0 stays one),
 * str, list (an array), tuple, dict (a Map), and the objects Jinja adds.
 */
export type Value =
  | null
  | boolean
  | number
  | string
  | Markup
  | Float
  | Undefined
  | Value[]
  | Tuple
  | ItemStream
  | Dict
  | Namespace
  | Callable
  | Loop;
type DictKey = null | boolean | number | string;
export type Dict = Map<DictKey, Value>;

export class Float {
  constructor(readonly value: number) {}
}

/** A text that is HTML already, as `safe` and `escape` make: texts joined to it are escaped. Else as its text. */
export class Markup {
  constructor(readonly text: string) {}
}

/** Markup as the text that it is. */
export function plain<Kind extends Value>(value: Kind | Markup): Exclude<Kind, Markup> | string {
  return value instanceof Markup ? value.text : (value as Exclude<Kind, Markup>);
}

/** A missing name or attribute: prints as nothing, is false, and fails when used otherwise. */
export class Undefined {
  constructor(readonly reason: string) {}
}

export class Tuple {
  constructor(readonly items: readonly Value[]) {}
}

/** A Python generator: gives its items to the first iteration, is true and has no length. */
export class ItemStream {
  #produce: (() => readonly Value[]) | undefined;

  constructor(produce: () => readonly Value[]) {
    this.#produce = produce;
  }

  take(): readonly Value[] {
    const produce = this.#produce;
    this.#produce = undefined;
    return produce?.() ?? [];
  }
}

/** `namespace(...)`: the one object whose attributes a template may set. */
export class Namespace {
  constructor(readonly attributes: Map<string, Value>) {}
}

export type NamedValues = ReadonlyMap<string, Value>;

export class Callable {
  constructor(
    readonly name: string,
    readonly call: (args: readonly Value[], named: NamedValues) => Value,
  ) {}
}

/** The `loop` variable of a for statement. */
export class Loop {
  constructor(
    readonly attributes: (name: string) => Value | undefined,
    /** Renders the loop's body again over other items, in a recursive loop. */
    readonly recurse: ((items: Value) => Value) | undefined,
  ) {}
}

/** A value that may be missing, or another. `??` will not do: None is null. */
export function valueOr(value: Value | undefined, fallback: Value): Value {
  return value === undefined ? fallback : value;
}

const maxDepth = 256;

/** JSON-like data as template values. Own enumerable properties only; functions and cycles are refused. */
export function toValue(data: unknown, depth = 0): Value {
  if (depth > maxDepth) throw templateError("The template's input is nested too deeply.");
  if (data === null || typeof data === "boolean" || typeof data === "string") return data;
  if (data === undefined) return null;
  if (typeof data === "number") return Number.isInteger(data) ? data : new Float(data);
  if (typeof data === "bigint") return Number(data);
  if (Array.isArray(data)) return data.map((item) => toValue(item, depth + 1));
  if (data instanceof Map)
    return toDict(
      [...(data as Map<unknown, unknown>)].map(([key, value]) => [String(key), value]),
      depth,
    );
  if (typeof data === "object")
    return toDict(
      Object.entries(data).filter(([, value]) => value !== undefined),
      depth,
    );
  throw templateError(`The template's input holds a ${typeof data}, which templates cannot use.`);
}

function toDict(entries: readonly (readonly [string, unknown])[], depth: number): Dict {
  return new Map(entries.map(([key, value]) => [key, toValue(value, depth + 1)]));
}

/** Python's name for a value's type. */
export function typeName(value: Value): string {
  if (value === null) return "NoneType";
  if (typeof value === "boolean") return "bool";
  if (typeof value === "number") return "int";
  if (typeof value === "string") return "str";
  if (value instanceof Markup) return "Markup";
  if (value instanceof Float) return "float";
  if (Array.isArray(value)) return "list";
  if (value instanceof Tuple) return "tuple";
  if (value instanceof Map) return "dict";
  if (value instanceof Undefined) return "Undefined";
  if (value instanceof Namespace) return "Namespace";
  if (value instanceof ItemStream) return "generator";
  return value instanceof Loop ? "LoopContext" : "function";
}

/** Fails for an undefined value, as any use but printing and testing does in Python. */
export function needDefined<Kind extends Value>(value: Kind): Exclude<Kind, Undefined> {
  if (value instanceof Undefined) throw templateError(value.reason);
  return value as Exclude<Kind, Undefined>;
}

export function isTrue(value: Value): boolean {
  if (value === null || value instanceof Undefined) return false;
  if (typeof value === "boolean") return value;
  if (typeof value === "number") return value !== 0;
  if (typeof value === "string") return value !== "";
  if (value instanceof Markup) return value.text !== "";
  if (value instanceof Float) return value.value !== 0;
  if (Array.isArray(value)) return value.length > 0;
  if (value instanceof Tuple) return value.items.length > 0;
  if (value instanceof Map) return value.size > 0;
  return true;
}

/** The number a value is in arithmetic (bools count), undefined for others. */
export function numericValue(value: Value): number | undefined {
  if (typeof value === "number") return value;
  if (typeof value === "boolean") return value ? 1 : 0;
  return value instanceof Float ? value.value : undefined;
}

export function itemsOf(value: Value): readonly Value[] | undefined {
  if (Array.isArray(value)) return value;
  return value instanceof Tuple ? value.items : undefined;
}

/** What a for loop sees: items, a dict's keys, a string's characters, nothing for undefined. */
export function iterate(value: Value): readonly Value[] {
  const items = itemsOf(value);
  if (items !== undefined) {
    spend(listWork(items.length));
    return items;
  }
  if (value instanceof Map) {
    spend(listWork(value.size));
    return [...value.keys()];
  }
  if (typeof value === "string") {
    spend(listWork(value.length));
    return Array.from(value);
  }
  if (value instanceof Markup) return iterate(value.text);
  if (value instanceof ItemStream) {
    const taken = value.take();
    spend(listWork(taken.length));
    return taken;
  }
  if (value instanceof Undefined) return [];
  throw templateError(`'${typeName(value)}' object is not iterable`);
}

export function equals(left: Value, right: Value): boolean {
  spend(1);
  const leftNumber = numericValue(left);
  const rightNumber = numericValue(right);
  if (leftNumber !== undefined || rightNumber !== undefined) return leftNumber === rightNumber;
  if (left instanceof Undefined && right instanceof Undefined) return true;
  if (Array.isArray(left) && Array.isArray(right)) return sameItems(left, right);
  if (left instanceof Tuple && right instanceof Tuple) return sameItems(left.items, right.items);
  if (left instanceof Map && right instanceof Map) {
    return (
      left.size === right.size &&
      [...left].every(([key, value]) => right.has(key) && equals(value, right.get(key)!))
    );
  }
  const [first, second] = [plain(left), plain(right)];
  if (typeof first === "string" && typeof second === "string" && first.length === second.length)
    spend(textWork(first));
  return first === second;
}

function sameItems(left: readonly Value[], right: readonly Value[]): boolean {
  return left.length === right.length && left.every((item, index) => equals(item, right[index]!));
}

/** Negative, zero or positive, for values that Python orders. */
export function compare(left: Value, right: Value): number {
  spend(1);
  const leftNumber = numericValue(left);
  const rightNumber = numericValue(right);
  if (leftNumber !== undefined && rightNumber !== undefined) return leftNumber - rightNumber;
  const [leftText, rightText] = [plain(left), plain(right)];
  if (typeof leftText === "string" && typeof rightText === "string")
    return compareCodePoints(leftText, rightText);
  if ((Array.isArray(left) && Array.isArray(right)) || (left instanceof Tuple && right instanceof Tuple)) {
    const [first, second] = [itemsOf(left)!, itemsOf(right)!];
    for (let index = 0; index < Math.min(first.length, second.length); index++) {
      if (!equals(first[index]!, second[index]!)) return compare(first[index]!, second[index]!);
    }
    return first.length - second.length;
  }
  needDefined(left);
  needDefined(right);
  throw templateError(`'<' not supported between instances of '${typeName(left)}' and '${typeName(right)}'`);
}

function compareCodePoints(left: string, right: string): number {
  spend(listWork(left.length + right.length));
  const [first, second] = [Array.from(left), Array.from(right)];
  for (let index = 0; index < Math.min(first.length, second.length); index++) {
    const difference = first[index]!.codePointAt(0)! - second[index]!.codePointAt(0)!;
    if (difference !== 0) return difference;
  }
  return first.length - second.length;
}

export function contains(container: Value, item: Value): boolean {
  const [text, part] = [plain(container), plain(item)];
  if (typeof text === "string") {
    spend(textWork(text));
    if (typeof part === "string") return text.includes(part);
    throw templateError(`'in <string>' requires string as left operand, not ${typeName(item)}`);
  }
  if (container instanceof Map) return dictGet(container, item) !== undefined;
  return iterate(container).some((candidate) => equals(candidate, item));
}

/** Whether Python takes a value for a dict's key. */
export function isHashable(value: Value): boolean {
  return !Array.isArray(value) && !(value instanceof Map);
}

/** A value as a key of this dict. Python's 1, 1.0 and True are one key, written as it was first set. */
function keyIn(dict: Dict, value: Value): DictKey {
  if (value instanceof Float) return keyIn(dict, value.value);
  if (value instanceof Markup) return value.text;
  if (value === null || typeof value === "string") return value;
  if (typeof value === "boolean") return dict.has(Number(value)) ? Number(value) : value;
  if (typeof value !== "number") throw templateError(`unhashable type: '${typeName(needDefined(value))}'`);
  return (value === 0 || value === 1) && dict.has(value === 1) ? value === 1 : value;
}

/** undefined for a key that the dict lacks, as it lacks undefined ones, tuples and functions. */
export function dictGet(dict: Dict, key: Value): Value | undefined {
  const isObject = typeof plain(key) === "object" && key !== null && !(key instanceof Float);
  if (isObject && isHashable(key)) return undefined;
  return dict.get(keyIn(dict, key));
}

export function dictSet(dict: Dict, key: Value, value: Value): void {
  dict.set(keyIn(dict, key), value);
}
