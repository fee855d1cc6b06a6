import type { JsonObject, JsonValue } from "../grammar.js";
import { restrictionOf } from "./restriction.js";
import { pathOf, schemaError } from "./schema-error.js";

/** A schema and its path. Schema objects keep their identity, by which rules are shared. */
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

/** Checks keywords whose errors could not be reported where they are used. */
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

/** Reads keywords of one type; undefined where the schema lacks them. */
function keywordReader<Type extends JsonValue>(
  isGood: (value: JsonValue) => value is Type,
  must: string,
): (located: Located, keyword: string) => Type | undefined {
  return ({ schema, path }, keyword) => {
    const value = schema[keyword];
    if (value === undefined || isGood(value)) return value;
    throw schemaError(pathOf(path, keyword), `must be ${must}`);
  };
}

const isNumber = (value: JsonValue): value is number => typeof value === "number" && Number.isFinite(value);

export const countKeyword = keywordReader(
  (value): value is number => isNumber(value) && Number.isInteger(value) && value >= 0,
  "an integer of at least 0",
);
export const numberKeyword = keywordReader(isNumber, "a number");
export const stringKeyword = keywordReader((value) => typeof value === "string", "a string");
export const booleanKeyword = keywordReader((value) => typeof value === "boolean", "true or false");

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

/** Bits of the kinds that `type` allows; without `type`, those that the other keywords imply. */
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
  return booleanKeyword(located, "nullable") === true ? bits | kinds.null : bits;
}

const memberWords =
  "properties required additionalProperties patternProperties propertyNames minProperties maxProperties unevaluatedProperties";
const itemWords = "items prefixItems minItems maxItems uniqueItems contains unevaluatedItems";

/** Keywords that apply to objects or arrays. */
export const containerWords: readonly string[] = `${memberWords} ${itemWords}`.split(" ");

const wordsOfKind: readonly (readonly [number, readonly string[]])[] = [
  [kinds.object, memberWords.split(" ")],
  [kinds.array, itemWords.split(" ")],
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
