import { all, choice, type Node, nothing } from "../node.js";
import type { Conjunction } from "./conjunction.js";
import { numberFormats } from "./formats.js";
import { kinds, numberKeyword, stringKeyword } from "./keywords.js";
import { type Divisor, fractional, multipleNode } from "./multiple-of.js";
import { anyInteger, anyNumber, boundedNumber, hasBounds, type NumberBounds } from "./number-node.js";
import { restrictionOf } from "./restriction.js";
import { pathOf } from "./schema-error.js";
import type { SchemaContext } from "./schema-context.js";

/** A number of the given kinds (integers, fractions or both) under all of the schemas. */
export function numberNode(conjunction: Conjunction, bits: number, compiler: SchemaContext): Node {
  const bounds: { -readonly [Key in keyof NumberBounds]: NumberBounds[Key] } = {};
  const raise = (key: "minimum" | "exclusiveMinimum", value: number | undefined): void => {
    if (value !== undefined) bounds[key] = Math.max(bounds[key] ?? value, value);
  };
  const lower = (key: "maximum" | "exclusiveMaximum", value: number | undefined): void => {
    if (value !== undefined) bounds[key] = Math.min(bounds[key] ?? value, value);
  };
  const divisors: Divisor[] = [];
  const nonDivisors: Divisor[] = [];
  for (const located of conjunction) {
    const { schema, path } = located;
    const isDraft4 = (keyword: string): boolean => typeof schema[keyword] === "boolean";
    const minimum = numberKeyword(located, "minimum");
    const maximum = numberKeyword(located, "maximum");
    // Draft 4: the exclusive keywords are flags of the plain ones.
    raise(schema["exclusiveMinimum"] === true ? "exclusiveMinimum" : "minimum", minimum);
    lower(schema["exclusiveMaximum"] === true ? "exclusiveMaximum" : "maximum", maximum);
    if (!isDraft4("exclusiveMinimum")) raise("exclusiveMinimum", numberKeyword(located, "exclusiveMinimum"));
    if (!isDraft4("exclusiveMaximum")) lower("exclusiveMaximum", numberKeyword(located, "exclusiveMaximum"));
    const format = stringKeyword(located, "format");
    const range = format === undefined ? undefined : numberFormats.get(format);
    raise("minimum", range?.minimum);
    lower("maximum", range?.maximum);
    const value = numberKeyword(located, "multipleOf");
    if (value !== undefined) divisors.push({ value, path: pathOf(path, "multipleOf") });
    const absent = restrictionOf(schema)?.divisor;
    if (absent !== undefined) nonDivisors.push(absent);
  }
  const of = (isInteger: boolean): Node =>
    all(
      hasBounds(bounds) ? boundedNumber(bounds, isInteger) : isInteger ? anyInteger : anyNumber,
      ...divisors.map((divisor) => multipleNode(divisor, bounds, false, compiler.rules)),
    );
  const shown = [divisors, nonDivisors].map((list) => list.map(({ value }) => value).join()).join(";");
  const key = `number:${bits & kinds.number},${JSON.stringify(bounds)},${shown}`;
  return compiler.rules.rule(key, "number", () => {
    const isInteger = (bits & kinds.fraction) === 0;
    if (nonDivisors.length === 0 && (isInteger || (bits & kinds.integer) !== 0)) return of(isInteger);
    const opposites = (wanted: (value: number) => boolean): Node[] =>
      nonDivisors
        .filter(({ value }) => wanted(value))
        .map((divisor) => multipleNode(divisor, bounds, true, compiler.rules));
    // Divided apart: no fraction is a multiple of an integer.
    const whole = (bits & kinds.integer) === 0 ? nothing : all(of(true), ...opposites(() => true));
    const broken = isInteger
      ? nothing
      : all(of(false), fractional, ...opposites((value) => !Number.isInteger(value)));
    return choice(whole, broken);
  });
}
