import type { JsonObject, JsonValue } from "../grammar.js";
import { isObject, kindOf, type Located, numberOf, countOf } from "./keywords.js";
import { type Conjunction, kindsIn } from "./schema-compiler.js";
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
  const bits = kindsIn(conjunction.filter(({ schema }) => schema["type"] !== undefined));
  return values.filter(
    (value) => (kindOf(value) & bits) !== 0 && conjunction.every((located) => satisfies(value, located)),
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

const structural = [
  "properties",
  "required",
  "additionalProperties",
  "patternProperties",
  "propertyNames",
  "minProperties",
  "maxProperties",
  "items",
  "prefixItems",
  "minItems",
  "maxItems",
  "uniqueItems",
  "not",
];

/** Checks a listed value against the keywords beside it. */
function satisfies(value: JsonValue, located: Located): boolean {
  const { schema, path } = located;
  if (typeof value === "string") return stringSatisfies(value, schema, located);
  if (typeof value === "number") {
    const checks: readonly (readonly [string, (bound: number) => boolean])[] = [
      ["minimum", (bound) => value >= bound],
      ["maximum", (bound) => value <= bound],
      ["exclusiveMinimum", (bound) => value > bound],
      ["exclusiveMaximum", (bound) => value < bound],
      ["multipleOf", (bound) => Number.isInteger(value / bound)],
    ];
    return checks.every(([keyword, check]) => {
      const bound = numberOf(located, keyword);
      return bound === undefined || check(bound);
    });
  }
  if (typeof value !== "object" || value === null) return true;
  const beside = structural.find((keyword) => schema[keyword] !== undefined);
  if (beside !== undefined)
    throw schemaError(pathOf(path, beside), "is not supported beside an enum or const of objects or arrays");
  return true;
}

function stringSatisfies(value: string, schema: JsonObject, located: Located): boolean {
  const length = Array.from(value).length;
  if (length < (countOf(located, "minLength") ?? 0)) return false;
  if (length > (countOf(located, "maxLength") ?? length)) return false;
  for (const keyword of ["pattern", "not"]) {
    if (schema[keyword] !== undefined)
      throw schemaError(
        pathOf(located.path, keyword),
        "is not supported beside enum or const; leave out the values that it excludes",
      );
  }
  return true;
}
