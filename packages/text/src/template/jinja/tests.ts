import type { Arguments } from "./arguments.js";
import { hasFilter } from "./filters.js";
import { applyComparison } from "./operators.js";
import { printed } from "./printing.js";
import type { ComparisonOperator } from "./syntax-tree.js";
import { templateError } from "./template-error.js";
import {
  Callable,
  needDefined,
  Float,
  ItemStream,
  itemsOf,
  Markup,
  numericValue,
  plain,
  typeName,
  Undefined,
  type Value,
} from "./values.js";

type Test = (value: Value, args: Arguments) => boolean;

function comparison(operator: ComparisonOperator): Test {
  return (value, args) => applyComparison(operator, value, args.need(0, "other"));
}

function integer(value: Value): number {
  const number = numericValue(needDefined(value));
  if (number === undefined) throw templateError(`a number is required, not ${typeName(value)}`);
  return number;
}

/** Jinja's tests. */
const tests: ReadonlyMap<string, Test> = new Map(
  Object.entries<Test>({
    defined: (value) => !(value instanceof Undefined),
    undefined: (value) => value instanceof Undefined,
    none: (value) => value === null,
    boolean: (value) => typeof value === "boolean",
    true: (value) => value === true,
    false: (value) => value === false,
    string: (value) => typeof value === "string",
    // Python's bool is an int, but Jinja's integer test leaves it out and its number test does not
    integer: (value) => typeof value === "number",
    float: (value) => value instanceof Float,
    number: (value) => numericValue(value) !== undefined,
    escaped: (value) => value instanceof Markup,
    mapping: (value) => value instanceof Map,
    iterable: (value) =>
      itemsOf(value) !== undefined ||
      value instanceof Map ||
      typeof value === "string" ||
      value instanceof ItemStream ||
      value instanceof Undefined,
    sequence: (value) =>
      itemsOf(value) !== undefined ||
      value instanceof Map ||
      typeof value === "string" ||
      value instanceof Undefined,
    callable: (value) => value instanceof Callable || value instanceof Undefined,
    odd: (value) => Math.abs(integer(value) % 2) === 1,
    even: (value) => integer(value) % 2 === 0,
    divisibleby: (value, args) => integer(value) % integer(args.need(0, "num")) === 0,
    lower: (value) => printed(value) === printed(value).toLowerCase() && /\p{L}/u.test(printed(value)),
    upper: (value) => printed(value) === printed(value).toUpperCase() && /\p{L}/u.test(printed(value)),
    sameas: (value, args) => value === args.need(0, "other"),
    in: (value, args) => applyComparison("in", value, args.need(0, "seq")),
    filter: (value) => typeof value === "string" && hasFilter(value),
    test: (value) => typeof value === "string" && tests.has(value),
    eq: comparison("=="),
    equalto: comparison("=="),
    ne: comparison("!="),
    lt: comparison("<"),
    lessthan: comparison("<"),
    le: comparison("<="),
    gt: comparison(">"),
    greaterthan: comparison(">"),
    ge: comparison(">="),
  }),
);

export function testNamed(name: string): Test {
  const test = tests.get(name);
  if (test === undefined) throw templateError(`No test named '${name}'.`);
  return name === "escaped" ? test : (value, args) => test(plain(value), args);
}
