import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { OctavoError } from "@octavo/protocol/errors";
import type { JsonValue } from "../grammar.js";
import { schemaGrammar } from "../testing/byte-grammar.js";
import { consequence } from "../testing/schema-cases.js";

describe("a schema that cannot be kept", () => {
  const refused: readonly (readonly [schema: JsonValue, message: RegExp])[] = [
    [{ type: "object", properties: { a: { if: 3 } } }, /#\/properties\/a\/if must be an object/],
    [{ type: "array", contains: {}, minContains: 3, maxContains: 2 }, /No text/],
    [{ type: "array", contains: { type: "null" }, maxContains: 9000 }, /#\/contains needs 18002 states/],
    [{ type: "array", uniqueItems: true }, /#\/uniqueItems is supported for items with an enum/],
    [
      { type: "array", items: { type: "integer", minimum: 1, maximum: 17 }, uniqueItems: true },
      /#\/uniqueItems is supported for items with an enum of at most 16 values/,
    ],
    [{ type: "array", items: { type: "boolean" }, uniqueItems: true, minItems: 3 }, /No text/],
    [{ dependentRequired: { a: [3] } }, /#\/dependentRequired\/a must be a list of property names/],
    [{ not: {} }, /No text/],
    [{ not: { not: { enum: [] } } }, /#\/not\/not\/enum|#\/enum|enum must be a list/],
    [{ type: "number", multipleOf: 0.012345 }, /#\/multipleOf/],
    [{ type: "integer", multipleOf: 0 }, /#\/multipleOf/],
    [{ not: { uniqueItems: true } }, /#\/not\/uniqueItems is not supported where its opposite/],
    [{ not: { $ref: "#" } }, /makes more than 1024 combinations|No text/],
    [{ anyOf: [{ $ref: "#" }, { $ref: "#" }] }, /No text|combinations/],
    [{ type: "string", format: "uri-template" }, /#\/format names "uri-template"/],
    [{ type: "string", pattern: "(a)\\1" }, /#\/pattern cannot be used: .*refers back/],
    [{ type: "string", pattern: "(?<=a)b" }, /looks behind/],
    [{ type: "string", pattern: "\\bword" }, /#\/pattern/],
    [{ type: "string", minLength: -1 }, /#\/minLength must be an integer/],
    [{ type: "string", minLength: 5, maxLength: 2 }, /No text/],
    [{ type: "string", pattern: "^a$", minLength: 2 }, /No text/],
    [{ type: "integer", minimum: 1, maximum: 0 }, /No text/],
    [{ enum: [] }, /#\/enum must be a list/],
    [{ type: "integer", enum: ["a"] }, /No text/],
    [false, /No text/],
    [{ type: "object", required: ["a"], additionalProperties: false }, /#\/required asks for "a"/],
    [{ type: "object", properties: { a: false }, required: ["a"] }, /asks for "a"/],
    [{ type: "object", minProperties: 3 }, /#\/minProperties above 1/],
    [{ $ref: "#" }, /#\/\$ref refers to itself/],
    [{ $ref: "#/$defs/missing" }, /#\/\$ref refers to "#\/\$defs\/missing"/],
    [{ $ref: "https://example.test/schema.json" }, /outside the schema/],
    [{ type: "object", properties: { next: { $ref: "#" } }, required: ["next"] }, /No text/],
    [{ oneOf: [{ type: "array", uniqueItems: true }, { type: "array" }] }, /#\/oneOf has branches 0 and 1/],
    [{ allOf: [] }, /#\/allOf must be a list/],
    [{ type: "strnig" }, /#\/type must be/],
    [{ type: 5 }, /#\/type must be/],
    [{ properties: [] }, /#\/properties must be/],
    [
      {
        type: "object",
        properties: Object.fromEntries(Array.from({ length: 1100 }, (_, index) => [`p${index}`, true])),
      },
      /more than 1024 properties/,
    ],
  ];
  const chain = (length: number, make: (inner: JsonValue, index: number) => JsonValue): JsonValue =>
    Array.from({ length }, (_, index) => index).reduce(make, { type: "integer" });
  const range = (length: number): number[] => Array.from({ length }, (_, index) => index);
  const exponential: readonly (readonly [name: string, schema: JsonValue, message: RegExp])[] = [
    [
      "oneOf in oneOf",
      chain(12, (inner, index) => ({ oneOf: [inner, { minimum: index }, { multipleOf: index + 2 }] })),
      /combinations/,
    ],
    [
      "if in if",
      chain(24, (inner, index) => ({ if: inner, else: { required: [`b${index}`] }, ...consequence(false) })),
      /combinations|No text|combines more/,
    ],
    [
      "dependencies in a ring",
      {
        type: "object",
        properties: Object.fromEntries(range(30).map((index) => [`p${index}`, true])),
        dependentRequired: Object.fromEntries(
          range(30).map((index) => [`p${index}`, [`p${(index + 1) % 30}`]]),
        ),
      },
      /#\/dependentRequired\S* makes more than 1024 combinations/,
    ],
    [
      "anyOf in allOf",
      { allOf: range(20).map((index) => ({ anyOf: [{ minimum: index }, { maximum: -index }] })) },
      /anyOf makes more than 1024 combinations/,
    ],
    [
      "several counts of items",
      {
        type: "array",
        allOf: range(3).map((index) => ({ contains: { minimum: index }, minContains: 12, maxContains: 15 })),
      },
      /contains needs 8192 states/,
    ],
    ["a very small divisor", { multipleOf: 1e-300, minimum: 0, maximum: 1 }, /multipleOf is supported/],
  ];
  for (const [name, schema, message] of exponential)
    it(`for its size: ${name}`, () => {
      assert.throws(() => schemaGrammar(schema), { code: "invalid_request", message });
    });

  it("unless what makes it large can be shared", () => {
    const deep = chain(200, (inner) => ({ not: { type: "object", properties: { a: inner } } }));
    assert.ok(schemaGrammar(deep)("1"));
    const listed = { enum: range(10_000).map((index) => `value${index}`), pattern: "^(v|w)+.*9$" };
    assert.ok(schemaGrammar(listed)('"value99"'));
  });

  for (const [schema, message] of refused) {
    it(JSON.stringify(schema).slice(0, 70), () => {
      assert.throws(
        () => schemaGrammar(schema),
        (error) => {
          assert.ok(error instanceof OctavoError && error.code === "invalid_request", String(error));
          assert.match(error.message, message);
          return true;
        },
      );
    });
  }
});
