import { all, type Node } from "../node.js";
import { numberFormats } from "./formats.js";
import { numberOf, stringOf } from "./keywords.js";
import {
  anyInteger,
  anyNumber,
  boundedNumber,
  hasBounds,
  maxDivisor,
  multiplesOf,
  type NumberBounds,
} from "./number-node.js";
import type { Conjunction, SchemaCompiler } from "./schema-compiler.js";
import { pathOf, schemaError } from "./schema-error.js";

/** A number, or with `isInteger` an integer, under all of the schemas. */
export function numberNode(conjunction: Conjunction, isInteger: boolean, compiler: SchemaCompiler): Node {
  const bounds: { -readonly [Key in keyof NumberBounds]: NumberBounds[Key] } = {};
  const raise = (key: "minimum" | "exclusiveMinimum", value: number | undefined): void => {
    if (value !== undefined) bounds[key] = Math.max(bounds[key] ?? value, value);
  };
  const lower = (key: "maximum" | "exclusiveMaximum", value: number | undefined): void => {
    if (value !== undefined) bounds[key] = Math.min(bounds[key] ?? value, value);
  };
  const divisors: number[] = [];
  for (const located of conjunction) {
    const { schema, path } = located;
    const isDraft4 = (keyword: string): boolean => typeof schema[keyword] === "boolean";
    const minimum = numberOf(located, "minimum");
    const maximum = numberOf(located, "maximum");
    // Draft 4: the exclusive keywords are flags of the plain ones.
    raise(schema["exclusiveMinimum"] === true ? "exclusiveMinimum" : "minimum", minimum);
    lower(schema["exclusiveMaximum"] === true ? "exclusiveMaximum" : "maximum", maximum);
    if (!isDraft4("exclusiveMinimum")) raise("exclusiveMinimum", numberOf(located, "exclusiveMinimum"));
    if (!isDraft4("exclusiveMaximum")) lower("exclusiveMaximum", numberOf(located, "exclusiveMaximum"));
    const format = stringOf(located, "format");
    const range = format === undefined ? undefined : numberFormats.get(format);
    raise("minimum", range?.minimum);
    lower("maximum", range?.maximum);
    const divisor = numberOf(located, "multipleOf");
    if (divisor === undefined) continue;
    // Fractions are refused: a validator divides doubles, where 0.07 is no multiple of 0.01.
    if (!Number.isInteger(divisor) || divisor < 1 || divisor > maxDivisor)
      throw schemaError(
        pathOf(path, "multipleOf"),
        `is supported for integers from 1 to ${maxDivisor}, not ${divisor}`,
      );
    divisors.push(divisor);
  }
  const plain = hasBounds(bounds) ? boundedNumber(bounds, isInteger) : isInteger ? anyInteger : anyNumber;
  const key = `number:${isInteger},${JSON.stringify(bounds)},${divisors.join()}`;
  return compiler.rules.rule(key, "number", () => all(plain, ...divisors.map(multiplesOf)));
}
