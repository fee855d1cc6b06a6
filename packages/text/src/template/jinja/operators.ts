import { formatPercent } from "./formatting.js";
import { toMarkup, formatMarkup } from "./markup.js";
import { boundedText, printed } from "./printing.js";
import { repeatText } from "./string-methods.js";
import type { BinaryOperator, ComparisonOperator } from "./syntax-tree.js";
import { templateError } from "./template-error.js";
import { spend } from "../../work.js";
import { listWork } from "../template-work.js";
import {
  compare,
  contains,
  needDefined,
  equals,
  Float,
  isTrue,
  itemsOf,
  Markup,
  numericValue,
  plain,
  Tuple,
  typeName,
  type Value,
} from "./values.js";

const maxItems = 1_000_000;

/** Python's arithmetic on template values. */
export function applyBinary(operator: BinaryOperator, left: Value, right: Value): Value {
  needDefined(left);
  if (!(operator === "%" && typeof plain(left) === "string")) needDefined(right);
  const leftNumber = numericValue(left);
  const rightNumber = numericValue(right);
  if (leftNumber !== undefined && rightNumber !== undefined) {
    return arithmetic(operator, leftNumber, rightNumber, left instanceof Float || right instanceof Float);
  }
  if (left instanceof Markup || right instanceof Markup) return applyToMarkup(operator, left, right);
  if (operator === "+") return concatenate(left, right);
  if (operator === "*") {
    if (rightNumber !== undefined && !(right instanceof Float)) return repeat(left, rightNumber);
    if (leftNumber !== undefined && !(left instanceof Float)) return repeat(right, leftNumber);
  }
  if (operator === "%" && typeof left === "string") return formatPercent(left, right);
  throw unsupported(operator, left, right);
}

function applyToMarkup(operator: BinaryOperator, left: Value, right: Value): Value {
  if (operator === "%" && left instanceof Markup) return formatMarkup(left, right);
  const isText = typeof plain(left) === "string" && typeof plain(right) === "string";
  if (operator === "+" && isText) return new Markup(boundedText(toMarkup(left).text + toMarkup(right).text));
  const result = applyBinary(operator, plain(left), plain(right));
  return operator === "*" && typeof result === "string" ? new Markup(result) : result;
}

function arithmetic(operator: BinaryOperator, left: number, right: number, isFloat: boolean): Value {
  const number = (value: number): Value => {
    if (isFloat) return new Float(value);
    if (!Number.isFinite(value)) throw templateError("An integer in the template grows too large.");
    return value;
  };
  switch (operator) {
    case "+":
      return number(left + right);
    case "-":
      return number(left - right);
    case "*":
      return number(left * right);
    case "/":
      return new Float(divide(left, right));
    case "//":
      return number(Math.floor(divide(left, right)));
    case "%":
      divide(left, right);
      return number(((left % right) + right) % right);
    case "**":
      if (left === 0 && right < 0) throw templateError("0.0 cannot be raised to a negative power");
      return right < 0 ? new Float(left ** right) : number(left ** right);
  }
}

function divide(left: number, right: number): number {
  if (right === 0) throw templateError("division by zero");
  return left / right;
}

function concatenate(left: Value, right: Value): Value {
  spend(listWork((itemsOf(left)?.length ?? 0) + (itemsOf(right)?.length ?? 0)));
  if (typeof left === "string" && typeof right === "string") return boundedText(left + right);
  if (Array.isArray(left) && Array.isArray(right)) return boundedItems([...left, ...right]);
  if (left instanceof Tuple && right instanceof Tuple)
    return new Tuple(boundedItems([...left.items, ...right.items]));
  if (typeof left === "string")
    throw templateError(`can only concatenate str (not "${typeName(right)}") to str`);
  throw unsupported("+", left, right);
}

function repeat(value: Value, count: number): Value {
  if (typeof value === "string") return repeatText(value, count);
  const items = itemsOf(value);
  if (items === undefined) throw unsupported("*", value, count);
  if (items.length * count > maxItems) throw templateError("The template builds too long a list.");
  spend(listWork(items.length * Math.max(count, 0)));
  const repeated = Array.from({ length: Math.max(count, 0) }, () => items).flat();
  return value instanceof Tuple ? new Tuple(repeated) : repeated;
}

function boundedItems(items: Value[]): Value[] {
  if (items.length > maxItems) throw templateError("The template builds too long a list.");
  return items;
}

function unsupported(operator: string, left: Value, right: Value): ReturnType<typeof templateError> {
  return templateError(
    `unsupported operand type(s) for ${operator}: '${typeName(left)}' and '${typeName(right)}'`,
  );
}

const comparisons: Readonly<Record<ComparisonOperator, (left: Value, right: Value) => boolean>> = {
  "==": equals,
  "!=": (left, right) => !equals(left, right),
  "<": (left, right) => compare(left, right) < 0,
  "<=": (left, right) => compare(left, right) <= 0,
  ">": (left, right) => compare(left, right) > 0,
  ">=": (left, right) => compare(left, right) >= 0,
  in: (left, right) => contains(right, left),
  "not in": (left, right) => !contains(right, left),
};

export function applyComparison(operator: ComparisonOperator, left: Value, right: Value): boolean {
  return comparisons[operator](left, right);
}

/** `value[start:stop:step]` of a string, list or tuple. */
export function slice(value: Value, start: Value, stop: Value, step: Value): Value {
  if (value instanceof Markup) return new Markup(printed(slice(value.text, start, stop, step)));
  spend(listWork(typeof value === "string" ? value.length : (itemsOf(value)?.length ?? 0)));
  const length = typeof value === "string" ? Array.from(value).length : itemsOf(needDefined(value))?.length;
  if (length === undefined)
    throw templateError(`'${typeName(value)}' object is not subscriptable by a slice`);
  const bound = (part: Value): number | undefined => {
    if (part === null) return undefined;
    if (typeof part === "number") return part;
    throw templateError("slice indices must be integers or None");
  };
  const stride = bound(step) ?? 1;
  if (stride === 0) throw templateError("slice step cannot be zero");
  const clamp = (index: number | undefined, fallback: number): number => {
    if (index === undefined) return fallback;
    const absolute = index < 0 ? index + length : index;
    return stride > 0
      ? Math.min(Math.max(absolute, 0), length)
      : Math.min(Math.max(absolute, -1), length - 1);
  };
  const from = clamp(bound(start), stride > 0 ? 0 : length - 1);
  const to = clamp(bound(stop), stride > 0 ? length : -1);
  const indices: number[] = [];
  for (let index = from; stride > 0 ? index < to : index > to; index += stride) indices.push(index);
  if (typeof value === "string") {
    const all = Array.from(value);
    return indices.map((index) => all[index]).join("");
  }
  const items = itemsOf(value)!;
  const taken = indices.map((index) => items[index]!);
  return value instanceof Tuple ? new Tuple(taken) : taken;
}

/** `not`, `-` and `+` before a value. */
export function applyUnary(operator: "not" | "-" | "+", operand: Value): Value {
  if (operator === "not") return !isTrue(operand);
  const number = numericValue(needDefined(operand));
  if (number === undefined)
    throw templateError(`bad operand type for unary ${operator}: '${typeName(operand)}'`);
  const signed = operator === "-" ? -number : number;
  return operand instanceof Float ? new Float(signed) : signed;
}
