import type { JsonObject, JsonValue } from "../grammar.js";
import { restrictionOf } from "./restriction.js";
import { pathOf, schemaError } from "./schema-error.js";

/** A schema and where it stands. Objects keep their identity, by which rules are shared. */
export interface Located {
  readonly schema: JsonObject;
  readonly path: string;
  /** The schema as it was before keywords were taken out of it. */
  readonly origin?: JsonObject;
  /** Schemas that apply this one to their own value, by `allOf` and its like, the outermost first. */
  readonly within?: readonly JsonObject[];
}

/** Kinds of JSON value as bits; a number is an integer or one with a fraction. */
export const kinds = {
  null: 1,
  boolean: 2,
  integer: 4,
  fraction: 8,
  number: 12,
  string: 16,
  array: 32,
  object: 64,
} as const;
export const anyKind = 127;

/** Checks keywords that are read where it would be too late to say what is wrong with them. */
export function checkKeywords({ schema, path }: Located): void {
  for (const keyword of ["if", "then", "else"]) {
    const value = schema[keyword];
    if (value !== undefined && typeof value !== "boolean" && !isObject(value))
      throw schemaError(pathOf(path, keyword), "must be an object, true or false");
  }
}

export function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function countKeyword({ schema, path }: Located, keyword: string): number | undefined {
  const value = schema[keyword];
  if (value === undefined) return undefined;
  if (typeof value !== "number" || !Number.isInteger(value) || value < 0)
    throw schemaError(pathOf(path, keyword), "must be an integer of at least 0");
  return value;
}

export function numberKeyword({ schema, path }: Located, keyword: string): number | undefined {
  const value = schema[keyword];
  if (value === undefined) return undefined;
  if (typeof value !== "number" || !Number.isFinite(value))
    throw schemaError(pathOf(path, keyword), "must be a number");
  return value;
}

export function stringKeyword({ schema, path }: Located, keyword: string): string | undefined {
  const value = schema[keyword];
  if (value === undefined) return undefined;
  if (typeof value !== "string") throw schemaError(pathOf(path, keyword), "must be a string");
  return value;
}

export function booleanOf({ schema, path }: Located, keyword: string): boolean | undefined {
  const value = schema[keyword];
  if (value === undefined) return undefined;
  if (typeof value !== "boolean") throw schemaError(pathOf(path, keyword), "must be true or false");
  return value;
}

/** A non-empty list of schemas, with its paths. */
export function schemaList({ schema, path }: Located, keyword: string): [JsonValue, string][] | undefined {
  const value = schema[keyword];
  if (value === undefined) return undefined;
  const at = pathOf(path, keyword);
  if (!Array.isArray(value) || value.length === 0)
    throw schemaError(at, "must be a list of schemas that is not empty");
  return value.map((item: JsonValue, index) => [item, pathOf(at, index)]);
}

export function schemaMap({ schema, path }: Located, keyword: string): [string, JsonValue, string][] {
  const value = schema[keyword];
  if (value === undefined) return [];
  const at = pathOf(path, keyword);
  if (!isObject(value)) throw schemaError(at, "must be an object of schemas");
  return Object.entries(value).map(([name, item]) => [name, item, pathOf(at, name)]);
}

/** Bits of the kinds that `type` allows; without `type`, those that the other keywords speak of. */
export function kindsOf(located: Located): number {
  const { schema, path } = located;
  const { type } = schema;
  const restriction = restrictionOf(schema);
  if (restriction !== undefined) return restriction.kinds;
  if (type === undefined) return impliedKinds(schema);
  const names: readonly JsonValue[] = Array.isArray(type) ? type : [type];
  let bits = 0;
  for (const name of names) {
    if (typeof name !== "string" || name === "fraction" || !Object.hasOwn(kinds, name)) {
      throw schemaError(
        pathOf(path, "type"),
        "must be null, boolean, integer, number, string, array, object or a list of them",
      );
    }
    bits |= kinds[name as keyof typeof kinds];
  }
  return booleanOf(located, "nullable") === true ? bits | kinds.null : bits;
}

const wordsOfKind: readonly (readonly [number, readonly string[]])[] = [
  [
    kinds.object,
    [
      "properties",
      "required",
      "additionalProperties",
      "patternProperties",
      "propertyNames",
      "minProperties",
      "maxProperties",
      "unevaluatedProperties",
    ],
  ],
  [
    kinds.array,
    ["items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains", "unevaluatedItems"],
  ],
  [kinds.string, ["minLength", "maxLength", "pattern"]],
  [kinds.number, ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]],
];

function impliedKinds(schema: JsonObject): number {
  let bits = 0;
  for (const [kind, words] of wordsOfKind) if (words.some((word) => schema[word] !== undefined)) bits |= kind;
  return bits === 0 ? anyKind : bits;
}

export function kindOf(value: JsonValue): number {
  if (value === null) return kinds.null;
  if (Array.isArray(value)) return kinds.array;
  if (typeof value === "number") return Number.isInteger(value) ? kinds.integer : kinds.fraction;
  return kinds[typeof value as "boolean" | "string" | "object"];
}
