import type { JsonValue } from "../grammar.js";
import { nodeMatcher } from "../automaton/node-matcher.js";
import { isMultipleOf } from "./decimal.js";
import { formatPatterns } from "./formats.js";
import { containerWords, isObject, kindOf, type Located, numberKeyword } from "./keywords.js";
import { stringContent } from "./string-node.js";
import { allKindsIn, type Conjunction } from "./conjunction.js";
import { restrictionOf } from "./restriction.js";
import { pathOf, schemaError } from "./schema-error.js";

const maxValues = 10_000;

/** The values that `enum` and `const` leave, where there are any; undefined where neither is given. */
export function allowedValues(conjunction: Conjunction): readonly JsonValue[] | undefined {
  let values: readonly JsonValue[] | undefined;
  for (const located of conjunction) {
    const { schema, path } = located;
    const { enum: listed, const: only } = schema;
    if (listed !== undefined) {
      if (!Array.isArray(listed) || listed.length === 0)
        throw schemaError(pathOf(path, "enum"), "must be a list of values that is not empty");
      if (listed.length > maxValues)
        throw schemaError(pathOf(path, "enum"), `has more than ${maxValues} values`);
      values = restrict(values, listed);
    }
    if (only !== undefined) values = restrict(values, [only]);
  }
  if (values === undefined) return undefined;
  // `type` given says more than what keywords imply: an enum of strings beside `minimum` is one of strings.
  const bits = allKindsIn(conjunction);
  const checks = conjunction.map((located) => [located, textCheck(located)] as const);
  return values.filter(
    (value) =>
      (kindOf(value) & bits) !== 0 && checks.every(([located, isText]) => satisfies(value, located, isText)),
  );
}

function restrict(
  values: readonly JsonValue[] | undefined,
  listed: readonly JsonValue[],
): readonly JsonValue[] {
  const unique = [...new Map(listed.map((value) => [canonical(value), value])).values()];
  if (values === undefined) return unique;
  const known = new Set(values.map(canonical));
  return unique.filter((value) => known.has(canonical(value)));
}

/** Equal for equal values, whatever the order of members. */
export function canonical(value: JsonValue): string {
  if (Array.isArray(value)) return `[${value.map((item: JsonValue) => canonical(item)).join()}]`;
  if (!isObject(value)) return JSON.stringify(value);
  const members = Object.keys(value)
    .toSorted()
    .map((key) => `${JSON.stringify(key)}:${canonical(value[key]!)}`);
  return `{${members.join()}}`;
}

/** Checks a listed value against the keywords beside it. */
function satisfies(value: JsonValue, located: Located, isText: (text: string) => boolean): boolean {
  const { schema, path } = located;
  if (typeof value === "string") return isText(JSON.stringify(value).slice(1, -1));
  if (typeof value === "number") {
    const divisor = restrictionOf(schema)?.divisor;
    if (divisor !== undefined && isMultipleOf(value, divisor.value)) return false;
    const [isAboveStrict, isBelowStrict] = [
      schema["exclusiveMinimum"] === true,
      schema["exclusiveMaximum"] === true,
    ];
    const checks: readonly (readonly [string, (bound: number) => boolean])[] = [
      ["minimum", (bound) => (isAboveStrict ? value > bound : value >= bound)],
      ["maximum", (bound) => (isBelowStrict ? value < bound : value <= bound)],
      ["exclusiveMinimum", (bound) => value > bound],
      ["exclusiveMaximum", (bound) => value < bound],
      ["multipleOf", (bound) => bound > 0 && isMultipleOf(value, bound)],
    ];
    return checks.every(([keyword, check]) => {
      const bound = typeof schema[keyword] === "boolean" ? undefined : numberKeyword(located, keyword);
      return bound === undefined || check(bound);
    });
  }
  if (typeof value !== "object" || value === null) return true;
  const beside = containerWords.find((keyword) => schema[keyword] !== undefined);
  if (beside !== undefined)
    throw schemaError(pathOf(path, beside), "is not supported beside an enum or const of objects or arrays");
  return true;
}

/** Tests strings against the keywords for strings. An unknown format does not restrict listed values. */
function textCheck(located: Located): (text: string) => boolean {
  const { schema } = located;
  const { format, ...others } = schema;
  const says = ["minLength", "maxLength", "pattern"].some((word) => schema[word] !== undefined);
  const hasFormat = typeof format === "string" && formatPatterns.has(format);
  if (!says && !hasFormat && restrictionOf(schema) === undefined) return () => true;
  const isLeftOut = format !== undefined && !hasFormat;
  return nodeMatcher(stringContent([isLeftOut ? { ...located, schema: others } : located]));
}
