import type { JsonObject, JsonValue } from "../grammar.js";
import { formatPatterns, numberFormats, unenforcedFormats } from "./formats.js";
import {
  anyKind,
  countKeyword,
  isObject,
  kindOf,
  kinds,
  kindsOf,
  type Located,
  numberKeyword,
  schemaList,
  schemaMap,
  stringKeyword,
} from "./keywords.js";
import { restricted } from "./restriction.js";
import { pathOf, schemaError } from "./schema-error.js";

/** Most numbers that a value must differ from: each adds one more range. */
const maxNumbers = 256;
const maxOneOf = 8;

/** Keywords whose negation no automaton of bounded size can check. */
const withoutOpposite: readonly string[] =
  "additionalProperties patternProperties propertyNames unevaluatedProperties unevaluatedItems".split(" ");

/**
 * Negated schemas. A value violates a schema when it violates at least one keyword: a list of alternatives. Nested schemas
 * are negated only when they are reached, so a recursive schema gives finitely many alternatives.
 */
export class Negation {
  readonly #opposites = new Map<JsonObject, JsonValue>();
  readonly #negated = new Map<JsonObject, JsonObject>();
  readonly #references: (located: Located) => readonly (readonly [JsonValue, string])[];

  constructor(references: (located: Located) => readonly (readonly [JsonValue, string])[]) {
    this.#references = references;
  }

  /** The negation, one level deep. Throws `invalid_request` naming a keyword that cannot be negated. */
  opposite(schema: JsonValue, path: string): JsonValue {
    if (typeof schema === "boolean") return !schema;
    if (!isObject(schema)) throw schemaError(path, "must be an object, true or false");
    let known = this.#opposites.get(schema);
    if (known === undefined) {
      const options = this.#alternatives({ schema, path }).filter((option) => option !== false);
      known = options.length === 0 ? false : options.includes(true) ? true : { anyOf: options };
      this.#opposites.set(schema, known);
    }
    return known;
  }

  /** The negation as a `not` schema, to be expanded when it is reached. */
  not(schema: JsonValue): JsonValue {
    if (typeof schema === "boolean") return !schema;
    if (!isObject(schema)) return { not: schema };
    let known = this.#negated.get(schema);
    if (known === undefined) {
      known = { not: schema };
      this.#negated.set(schema, known);
    }
    return known;
  }

  #alternatives(located: Located): JsonValue[] {
    const { schema, path } = located;
    for (const keyword of withoutOpposite) {
      const value = schema[keyword];
      const saysNothing =
        value === undefined || value === true || (isObject(value) && Object.keys(value).length === 0);
      if (!saysNothing) throw withoutOppositeError(path, keyword);
    }
    const bits = schema["type"] === undefined ? anyKind : kindsOf(located);
    const others = anyKind & ~bits;
    return [
      ...(others === 0 ? [] : [restricted({ kinds: others })]),
      ...this.#notListed(located, bits),
      ...(bits & kinds.number ? notNumbers(located, bits & kinds.number) : []),
      ...(bits & kinds.string ? notStrings(located) : []),
      ...(bits & kinds.object ? this.#notObjects(located) : []),
      ...(bits & kinds.array ? this.#notArrays(located) : []),
      ...this.#notCombined(located),
    ];
  }

  #notListed({ schema, path }: Located, bits: number): JsonValue[] {
    const { enum: listed, const: only } = schema;
    const lists: (readonly JsonValue[])[] = [];
    if (Array.isArray(listed)) lists.push(listed as readonly JsonValue[]);
    if (only !== undefined) lists.push([only]);
    return lists.flatMap((values) => this.#otherThan(values, bits, path));
  }

  #otherThan(values: readonly JsonValue[], bits: number, path: string): JsonValue[] {
    const result: JsonValue[] = [];
    if (bits & kinds.null && !values.includes(null)) result.push(restricted({ kinds: kinds.null }));
    if (bits & kinds.boolean)
      for (const value of [true, false])
        if (!values.includes(value)) result.push(restricted({ kinds: kinds.boolean }, { const: value }));
    if (bits & kinds.number) {
      const numbers = [...new Set(values.filter((value) => typeof value === "number"))].toSorted(
        (a, b) => a - b,
      );
      if (numbers.length > maxNumbers)
        throw schemaError(
          pathOf(path, "enum"),
          `has more than ${maxNumbers} numbers, too many for its opposite`,
        );
      for (let index = 0; index <= numbers.length; index += 1) {
        const [above, below] = [numbers[index - 1], numbers[index]];
        result.push(
          restricted(
            { kinds: bits & kinds.number },
            {
              ...(above !== undefined && { exclusiveMinimum: above }),
              ...(below !== undefined && { exclusiveMaximum: below }),
            },
          ),
        );
      }
    }
    if (bits & kinds.string) {
      const strings = values.filter((value) => typeof value === "string");
      result.push(restricted({ kinds: kinds.string, strings }));
    }
    const apart = (kind: number, differs: (value: JsonValue) => JsonValue[]): void => {
      if (!(bits & kind)) return;
      const own = values.filter((value) => kindOf(value) === kind);
      result.push({
        allOf: [restricted({ kinds: kind }), ...own.map((value) => ({ anyOf: differs(value) }))],
      });
    };
    apart(kinds.array, (value) => this.#otherArray(value as readonly JsonValue[]));
    apart(kinds.object, (value) => this.#otherObject(value as JsonObject));
    return result;
  }

  #otherArray(value: readonly JsonValue[]): JsonValue[] {
    const { length } = value;
    const kind = { kinds: kinds.array };
    return [
      ...(length > 0 ? [restricted(kind, { maxItems: length - 1 })] : []),
      restricted(kind, { minItems: length + 1 }),
      ...value.map((item, index) => itemAt(index, { not: { const: item } })),
    ];
  }

  #otherObject(value: JsonObject): JsonValue[] {
    const names = Object.keys(value);
    const kind = { kinds: kinds.object };
    return [
      ...names.map((name) => withoutMember(name)),
      ...names.map((name) => withMember(name, { not: { const: value[name]! } })),
      restricted(kind, {
        required: names,
        properties: membersOf(names.map((name) => [name, true])),
        minProperties: names.length + 1,
        additionalProperties: true,
      }),
    ];
  }

  #notObjects(located: Located): JsonValue[] {
    const { schema } = located;
    const { required } = schema;
    const least = countKeyword(located, "minProperties") ?? 0;
    const most = countKeyword(located, "maxProperties");
    const kind = { kinds: kinds.object };
    const dependent = dependencies(located).map(([name, need]) => ({
      allOf: [restricted(kind, { required: [name] }), this.not(need)],
    }));
    return [
      ...(Array.isArray(required) ? required.map((name) => withoutMember(String(name))) : []),
      ...schemaMap(located, "properties")
        .filter(([, value]) => value !== true)
        .map(([name, value]) => withMember(name, this.not(value))),
      ...(least > 0 ? [restricted(kind, { maxProperties: least - 1 })] : []),
      ...(most === undefined ? [] : [restricted(kind, { minProperties: most + 1 })]),
      ...dependent,
    ];
  }

  #notArrays(located: Located): JsonValue[] {
    const { schema, path } = located;
    if (schema["uniqueItems"] === true) throw withoutOppositeError(path, "uniqueItems");
    const kind = { kinds: kinds.array };
    const least = countKeyword(located, "minItems") ?? 0;
    const most = countKeyword(located, "maxItems");
    const result: JsonValue[] = [];
    if (least > 0) result.push(restricted(kind, { maxItems: least - 1 }));
    if (most !== undefined) result.push(restricted(kind, { minItems: most + 1 }));
    const isTuple = Array.isArray(schema["items"]);
    const prefix =
      isTuple && (schema["items"] as readonly JsonValue[]).length === 0
        ? []
        : (schemaList(located, isTuple ? "items" : "prefixItems") ?? []);
    for (const [index, [item]] of prefix.entries()) result.push(itemAt(index, this.not(item)));
    const rest = schema[isTuple ? "additionalItems" : "items"];
    if (rest !== undefined && rest !== true && !Array.isArray(rest)) {
      if (rest === false) result.push(restricted(kind, { minItems: prefix.length + 1 }));
      else if (prefix.length === 0) result.push(restricted(kind, { contains: this.not(rest) }));
      else throw withoutOppositeError(path, isTuple ? "additionalItems" : "items");
    }
    const { contains } = schema;
    if (contains !== undefined) {
      const atLeast = countKeyword(located, "minContains") ?? 1;
      const atMost = countKeyword(located, "maxContains");
      if (atLeast > 0) result.push(restricted(kind, { contains, minContains: 0, maxContains: atLeast - 1 }));
      if (atMost !== undefined) result.push(restricted(kind, { contains, minContains: atMost + 1 }));
    }
    return result;
  }

  #notCombined(located: Located): JsonValue[] {
    const { schema, path } = located;
    const result: JsonValue[] = this.#references(located).map(([target]) => this.not(target));
    const listed = (keyword: string): JsonValue[] =>
      (schemaList(located, keyword) ?? []).map(([item]) => item);
    result.push(...listed("allOf").map((item) => this.not(item)));
    const anyOf = listed("anyOf");
    if (anyOf.length > 0) result.push({ allOf: anyOf.map((item) => this.not(item)) });
    const oneOf = listed("oneOf");
    if (oneOf.length > maxOneOf)
      throw schemaError(
        pathOf(path, "oneOf"),
        `has more than ${maxOneOf} branches, too many for its opposite`,
      );
    if (oneOf.length > 0) result.push({ allOf: oneOf.map((item) => this.not(item)) });
    for (const [index, first] of oneOf.entries())
      for (const second of oneOf.slice(index + 1)) result.push({ allOf: [first, second] });
    if (schema["not"] !== undefined) result.push(schema["not"]);
    const { if: condition, then, else: otherwise } = schema;
    if (condition !== undefined) {
      if (then !== undefined) result.push({ allOf: [condition, this.not(then)] });
      if (otherwise !== undefined) result.push({ allOf: [this.not(condition), this.not(otherwise)] });
    }
    return result;
  }
}

/** What the presence of each member requires: `dependentRequired`, `dependentSchemas`, and drafts' `dependencies`. */
export function dependencies(located: Located): [string, JsonValue][] {
  const { schema, path } = located;
  const result: [string, JsonValue][] = [];
  for (const keyword of ["dependentRequired", "dependentSchemas", "dependencies"]) {
    const value = schema[keyword];
    if (value === undefined) continue;
    if (!isObject(value)) throw schemaError(pathOf(path, keyword), "must be an object");
    for (const [name, need] of Object.entries(value)) {
      const names = typeof need === "string" ? [need] : need;
      const isList = Array.isArray(names);
      const isName = isList && names.every((item) => typeof item === "string");
      if (isList ? !isName || keyword === "dependentSchemas" : keyword === "dependentRequired")
        throw schemaError(
          pathOf(pathOf(path, keyword), name),
          "must be a list of property names or a schema",
        );
      result.push([name, isList ? { required: names as JsonValue } : names]);
    }
  }
  return result;
}

export function withoutMember(name: string): JsonObject {
  return restricted({ kinds: kinds.object }, { properties: membersOf([[name, false]]) });
}

function withMember(name: string, value: JsonValue): JsonObject {
  return restricted({ kinds: kinds.object }, { required: [name], properties: membersOf([[name, value]]) });
}

/** An object without inherited names, so that members may have any name. */
function membersOf(entries: readonly (readonly [string, JsonValue])[]): JsonObject {
  return Object.fromEntries(entries);
}

function itemAt(index: number, value: JsonValue): JsonObject {
  const prefixItems = [...Array.from({ length: index }, () => true), value];
  return restricted({ kinds: kinds.array }, { minItems: index + 1, prefixItems });
}

function notNumbers(located: Located, bits: number): JsonObject[] {
  const { schema, path } = located;
  const result: JsonObject[] = [];
  const kind = { kinds: bits };
  const minimum = numberKeyword(located, "minimum");
  const maximum = numberKeyword(located, "maximum");
  if (minimum !== undefined)
    result.push(
      restricted(kind, { [schema["exclusiveMinimum"] === true ? "maximum" : "exclusiveMaximum"]: minimum }),
    );
  if (maximum !== undefined)
    result.push(
      restricted(kind, { [schema["exclusiveMaximum"] === true ? "minimum" : "exclusiveMinimum"]: maximum }),
    );
  if (typeof schema["exclusiveMinimum"] === "number")
    result.push(restricted(kind, { maximum: schema["exclusiveMinimum"] }));
  if (typeof schema["exclusiveMaximum"] === "number")
    result.push(restricted(kind, { minimum: schema["exclusiveMaximum"] }));
  const divisor = numberKeyword(located, "multipleOf");
  if (divisor !== undefined)
    result.push(restricted({ ...kind, divisor: { value: divisor, path: pathOf(path, "multipleOf") } }));
  const format = stringKeyword(located, "format");
  if (format !== undefined && numberFormats.has(format)) throw withoutOppositeError(path, "format");
  return result;
}

function notStrings(located: Located): JsonObject[] {
  const { path } = located;
  const result: JsonObject[] = [];
  const kind = { kinds: kinds.string };
  const least = countKeyword(located, "minLength") ?? 0;
  const most = countKeyword(located, "maxLength");
  if (least > 0) result.push(restricted(kind, { maxLength: least - 1 }));
  if (most !== undefined) result.push(restricted(kind, { minLength: most + 1 }));
  const pattern = stringKeyword(located, "pattern");
  if (pattern !== undefined)
    result.push(restricted({ ...kind, pattern: { pattern, path: pathOf(path, "pattern") } }));
  const format = stringKeyword(located, "format");
  if (format !== undefined && (formatPatterns.has(format) || unenforcedFormats.has(format)))
    throw withoutOppositeError(path, "format");
  return result;
}

function withoutOppositeError(path: string, keyword: string): Error {
  return schemaError(
    pathOf(path, keyword),
    "is not supported where its opposite is needed: in not, in if, and in branches of oneOf that a value might match both",
  );
}
