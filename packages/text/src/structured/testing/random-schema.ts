import type { TestRandom } from "../../testing/random.js";
import type { JsonObject, JsonValue } from "../grammar.js";

const names = [
  "id",
  "name",
  "email",
  "tags",
  "items",
  "address",
  "price",
  "quantity",
  "status",
  "notes",
  "createdAt",
  "score",
  "größe",
  'a"b',
  "user_id",
  "options",
];

/** A schema in the shapes that people send: records, lists, enums, unions, references, bounds. */
export function randomSchema(random: TestRandom): JsonObject {
  const definitions: Record<string, JsonObject> = {
    Node: {
      type: "object",
      properties: {
        value: { type: "integer", minimum: 0, maximum: 9 },
        next: { anyOf: [{ $ref: "#/$defs/Node" }, { type: "null" }] },
      },
      required: ["value", "next"],
      additionalProperties: false,
    },
    Address: record(random, 2),
  };
  return { $defs: definitions, ...record(random, 0) };
}

/** Closed records, so that what is generated is judged by the same rule that generated it. */
function record(random: TestRandom, depth: number): JsonObject {
  const chosen = names.filter(() => random.next() < 0.3).slice(0, 5);
  const properties = Object.fromEntries(chosen.map((name) => [name, value(random, depth + 1)]));
  const required = chosen.filter(() => random.next() < 0.6);
  return {
    type: "object",
    properties,
    ...(required.length > 0 && { required }),
    ...(random.next() < 0.6 ? { additionalProperties: false } : {}),
    ...(random.next() < 0.1 && { additionalProperties: { type: "integer" } }),
  };
}

function pick<T>(random: TestRandom, items: readonly T[]): T {
  return items[random.below(items.length)]!;
}

function value(random: TestRandom, depth: number): JsonValue {
  const kinds: readonly (() => JsonValue)[] = [
    () => ({ type: "string" }),
    () => ({ type: "string", minLength: random.below(3), maxLength: 3 + random.below(20) }),
    () => ({
      type: "string",
      pattern: pick(random, [
        "^[A-Z]{2}-\\d{3,5}$",
        "^\\w+$",
        "ab|cd",
        "^(foo|bar)",
        "[0-9]$",
        "^#[0-9a-fA-F]{6}$",
        "^(?!x)[a-z]{1,4}$",
      ]),
    }),
    () => ({
      type: "string",
      format: pick(random, ["date", "date-time", "time", "uuid", "email", "ipv4", "ipv6", "uri", "hostname"]),
    }),
    () => ({ type: "string", enum: ["red", "green", 'naïve "quote"', "a/b\\c"] }),
    () => ({ const: pick<JsonValue>(random, ["x", 3, true, null, { a: [1, 2] }, -1.5]) }),
    () => ({ type: "integer" }),
    () => {
      const minimum = random.below(200) - 100;
      return { type: "integer", minimum, maximum: minimum + random.below(500) };
    },
    () => ({ type: "integer", multipleOf: 1 + random.below(30), minimum: 0 }),
    () => ({ type: "number" }),
    () => ({
      type: "number",
      exclusiveMinimum: random.below(100) / 8 - 5,
      maximum: 20 + random.below(1000) / 100,
    }),
    () => ({
      type: pick<JsonValue>(random, ["boolean", "null", ["string", "null"], ["integer", "boolean"]]),
    }),
    () => ({ anyOf: [{ type: "integer", maximum: 5 }, { type: "string", maxLength: 4 }, { type: "null" }] }),
    () => ({ oneOf: [variant("circle", "radius"), variant("square", "side")] }),
    // Inside Address only Node, which can end: an Address that requires an Address has no instance.
    () => ({ $ref: depth > 2 ? "#/$defs/Node" : pick(random, ["#/$defs/Node", "#/$defs/Address"]) }),
    () => ({ enum: [1, "two", null, [3], { four: 4 }] }),
    () => ({
      type: "array",
      items: { type: "integer", minimum: 0, maximum: 99 },
      minItems: random.below(3),
      maxItems: 3 + random.below(4),
    }),
    () => ({ type: "array", items: { enum: ["a", "b", "c"] }, uniqueItems: true, minItems: 1 }),
    () => ({
      type: "array",
      prefixItems: [{ type: "integer" }, { type: "string", maxLength: 3 }],
      items: { type: "boolean" },
      maxItems: 4,
      minItems: 1,
    }),
    () => ({ type: "object", additionalProperties: { type: "number" }, maxProperties: 3 }),
    () => ({
      type: "object",
      patternProperties: { "^x_": { type: "integer" }, _n$: { type: "number" } },
      additionalProperties: false,
    }),
    () => ({
      allOf: [
        { type: "object", properties: { kind: { type: "string" } }, required: ["kind"] },
        { properties: { kind: { enum: ["k1", "k2"] }, size: { type: "integer" } } },
      ],
    }),
    () => ({
      type: "object",
      propertyNames: { pattern: "^[a-z]{1,5}$" },
      additionalProperties: { type: "boolean" },
    }),
    () => (depth > 2 ? { type: "boolean" } : record(random, depth)),
    () =>
      depth > 2
        ? { type: "array", maxItems: 2 }
        : { type: "array", items: value(random, depth + 1), maxItems: 3 },
    () => ({}),
    () => conditional(random),
    () => ({
      type: "object",
      properties: {
        card: { type: "string", maxLength: 4 },
        street: { type: "string" },
        code: { type: "integer" },
      },
      dependentRequired: { card: ["street"] },
      dependentSchemas: {
        street: { required: ["code"], properties: { code: { minimum: random.below(9) } } },
      },
      additionalProperties: false,
    }),
    () => ({
      type: "array",
      items: { type: "integer", minimum: 0, maximum: 20 },
      contains: { minimum: 5 + random.below(10) },
      minContains: 1 + random.below(2),
      maxContains: 3,
      maxItems: 6,
    }),
    () => ({ type: "string", not: { enum: ["red", "green"] }, maxLength: 8 }),
    () => ({ type: "integer", not: { multipleOf: 2 + random.below(5) }, minimum: -50, maximum: 50 }),
    () => ({ type: ["integer", "string"], not: { enum: [1, 2, "a"] }, maximum: 9, minimum: 0, maxLength: 3 }),
    () => ({
      oneOf: [
        { type: "number", minimum: 3, maximum: 90 },
        { type: "integer", maximum: 60 },
      ],
    }),
    () => ({ type: "integer", oneOf: [{ multipleOf: 3 }, { multipleOf: 2 }], minimum: 0, maximum: 300 }),
    () => ({ type: "number", multipleOf: pick(random, [0.25, 0.5, 1.5]) }),
    () => ({ type: "number", multipleOf: 0.01, minimum: 0, maximum: 1 + random.below(9) }),
    () => ({
      type: "object",
      allOf: [{ properties: { a: { type: "boolean" } } }],
      properties: { b: { type: "null" } },
      unevaluatedProperties: pick<JsonValue>(random, [false, { type: "integer" }]),
    }),
    () => ({
      type: "array",
      prefixItems: [{ type: "boolean" }],
      unevaluatedItems: pick<JsonValue>(random, [false, { type: "integer" }]),
      maxItems: 3,
    }),
  ];
  return pick(random, kinds)();
}

/** A record whose members depend on one of them. */
function conditional(random: TestRandom): JsonObject {
  const consequence: JsonObject = { required: ["size"], properties: { size: { minimum: random.below(5) } } };
  return {
    type: "object",
    properties: {
      kind: { enum: ["small", "large", 3] },
      size: { type: "integer", maximum: 99 },
      note: { type: "string", maxLength: 5 },
    },
    required: random.next() < 0.5 ? ["kind"] : [],
    additionalProperties: false,
    if: { properties: { kind: pick<JsonValue>(random, [{ const: "large" }, { type: "string" }]) } },
    // oxlint-disable-next-line no-thenable -- a keyword of JSON Schema, in data that nobody awaits
    then: consequence,
    ...(random.next() < 0.5 && { else: { properties: { note: { const: "no" } }, required: ["note"] } }),
  };
}

function variant(kind: string, property: string): JsonObject {
  return {
    type: "object",
    properties: { kind: { const: kind }, [property]: { type: "number", minimum: 0 } },
    required: ["kind", property],
    additionalProperties: false,
  };
}
