import { isRecord } from "@octavo/protocol";
import type { JsonSchema } from "../../cases/eval-case.js";

type TypeProblem = { readonly isNested: boolean; readonly message: string };

/** The names that function descriptions use for JSON's types, Python's and Java's among them. */
const typeNames: Readonly<Record<string, (value: unknown) => boolean>> = {
  string: (value) => typeof value === "string",
  integer: Number.isInteger,
  number: (value) => typeof value === "number",
  float: (value) => typeof value === "number",
  boolean: (value) => typeof value === "boolean",
  array: Array.isArray,
  tuple: Array.isArray,
  object: isRecord,
  dict: isRecord,
  null: (value) => value === null,
};

/**
 * How a value differs from what its description says: its type, and for an array that of its items, one level deep, as the
 * leaderboard checks. A value of the type of an accepted one is right whatever the description says.
 */
export function typeProblem(
  value: unknown,
  schema: JsonSchema | undefined,
  accepted: readonly unknown[],
): TypeProblem | undefined {
  const types = typesOf(schema);
  if (types === undefined) return undefined;
  if (!types.some((type) => typeNames[type]!(value))) {
    if (accepted.some((candidate) => candidate !== "" && kindOf(candidate) === kindOf(value)))
      return undefined;
    return { isNested: false, message: `expected ${types.join(" or ")}, got ${kindOf(value)}` };
  }
  const items = schema?.["items"];
  const itemTypes = Array.isArray(value) && isRecord(items) ? typesOf(items) : undefined;
  if (itemTypes === undefined || !Array.isArray(value)) return undefined;
  const wrong = value.findIndex((item) => !itemTypes.some((type) => typeNames[type]!(item)));
  if (wrong < 0) return undefined;
  return {
    isNested: true,
    message: `item ${wrong}: expected ${itemTypes.join(" or ")}, got ${kindOf(value[wrong])}`,
  };
}

/**
 * Whether a description allows the accepted values. It does not where a variable stands for a value of another type: then text is
 * compared character by character, as the leaderboard does.
 */
export function describes(schema: JsonSchema | undefined, accepted: readonly unknown[]): boolean {
  const types = typesOf(schema);
  const first = accepted.find((candidate) => candidate !== "");
  return types === undefined || first === undefined || types.some((type) => typeNames[type]!(first));
}

/** Undefined where the description leaves the type open. */
function typesOf(schema: JsonSchema | undefined): readonly string[] | undefined {
  const type = schema?.["type"];
  const types = (Array.isArray(type) ? type : [type]).filter((name) => typeof name === "string");
  const known = types.filter((name) => Object.hasOwn(typeNames, name));
  return known.length === 0 || known.length < types.length ? undefined : known;
}

function kindOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  return typeof value;
}
