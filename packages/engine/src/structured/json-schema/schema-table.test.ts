import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Ajv2020 } from "ajv/dist/2020.js";
import { OctavoError } from "@octavo/protocol";
import type { JsonObject, JsonValue } from "../grammar.js";
import { schemaGrammar } from "../testing/byte-grammar.js";

/** `then` of a schema, a key that an object that could be awaited must not be written with. */
const consequence = (schema: JsonValue): JsonObject =>
  JSON.parse(`{"then":${JSON.stringify(schema)}}`) as JsonObject;

/** Cases in the manner of the JSON Schema Test Suite: a schema, texts that it must take, texts that it must not. */
const cases: readonly (readonly [
  name: string,
  schema: JsonValue,
  good: readonly string[],
  bad: readonly string[],
])[] = [
  ["true", true, ["1", '"x"', "[null, {}]", '{"a": [1, 2]}'], ["", "tru", "[1,]"]],
  ["null", { type: "null" }, ["null"], ["nul", "0", '""']],
  ["boolean", { type: "boolean" }, ["true", "false"], ["null", "True"]],
  [
    "integer",
    { type: "integer" },
    ["0", "-1", "12345678901234567890"],
    ["01", "1.0", "1e2", "+1", "--1", "1234567890123456789012"],
  ],
  [
    "number",
    { type: "number" },
    ["0", "-0.5", "1e9", "1.25E-7", "1e+3"],
    ["01", ".5", "1.", "1e", "NaN", "1e999"],
  ],
  ["several types", { type: ["string", "null"] }, ['"a"', "null"], ["1", "true"]],
  ["nullable", { type: "string", nullable: true }, ['"a"', "null"], ["1"]],
  ["minimum", { type: "integer", minimum: 3 }, ["3", "10", "999"], ["2", "-5", "0"]],
  ["exclusiveMinimum", { type: "integer", exclusiveMinimum: 3 }, ["4", "30"], ["3", "2"]],
  ["maximum", { type: "integer", maximum: 120 }, ["120", "99", "0", "-7"], ["121", "1200", "130"]],
  [
    "a negative range",
    { type: "integer", minimum: -15, maximum: -3 },
    ["-15", "-3", "-10"],
    ["-16", "-2", "0", "3"],
  ],
  [
    "a range over zero",
    { type: "integer", minimum: -2, exclusiveMaximum: 2 },
    ["-2", "-1", "0", "1"],
    ["-3", "2", "-0"],
  ],
  ["draft 4's flags", { type: "integer", maximum: 5, exclusiveMaximum: true }, ["4"], ["5"]],
  [
    "a number's range",
    { type: "number", minimum: -0.5, exclusiveMaximum: 2.25 },
    ["-0.5", "0", "2.2499", "2", "1.99"],
    ["-0.51", "2.25", "2.3", "-1", "3"],
  ],
  [
    "a fraction with zeros",
    { type: "number", exclusiveMinimum: 0.05, maximum: 0.1 },
    ["0.051", "0.1", "0.10", "0.06"],
    ["0.05", "0.050", "0.11", "0", "0.0499"],
  ],
  [
    "int32",
    { type: "integer", format: "int32" },
    ["2147483647", "-2147483648"],
    ["2147483648", "-2147483649"],
  ],
  ["multipleOf", { type: "integer", multipleOf: 7 }, ["0", "7", "-14", "700"], ["1", "8", "-13"]],
  [
    "multipleOf in a range",
    { type: "number", multipleOf: 5, minimum: 12 },
    ["15", "20"],
    ["10", "12", "15.0"],
  ],
  [
    "lengths",
    { type: "string", minLength: 2, maxLength: 3 },
    ['"ab"', '"äöü"', '"\\n\\u00e4"', '"𝄞x"', '"\\ud834\\udd1ex"'],
    ['"a"', '"abcd"', '"𝄞"'],
  ],
  [
    "no lone surrogates",
    { type: "string" },
    ['"\\u00e9"', '"\\ud83d\\ude00"'],
    ['"\\ud83d"', '"\\ude00x"', '"\\x"', '"\n"'],
  ],
  ["a pattern found anywhere", { type: "string", pattern: "b\\d" }, ['"b1"', '"aab2c"'], ['"b"', '"1b"']],
  ["an anchored pattern", { type: "string", pattern: "^ab?$" }, ['"a"', '"ab"'], ['"xa"', '"abb"', '""']],
  [
    "a pattern with escapes",
    { type: "string", pattern: '^["\\\\\\n]+$' },
    ['"\\"\\\\\\n"'],
    ['"a"', '"\\u0022"'],
  ],
  [
    "alternatives with their own anchors",
    { type: "string", pattern: "^(a|b$)|c$" },
    ['"ax"', '"b"', '"xxc"'],
    ['"bx"', '"cx"'],
  ],
  [
    "lookahead",
    { type: "string", pattern: "^(?=.*\\d)(?!x)[a-z\\d]{2,4}$" },
    ['"a1"', '"1abc"'],
    ['"ab"', '"x1"', '"a"', '"abcd1"'],
  ],
  [
    "a pattern and lengths",
    { type: "string", pattern: "^[a-z]*$", minLength: 2, maxLength: 4 },
    ['"ab"', '"abcd"'],
    ['"a"', '"abcde"', '"AB"'],
  ],
  [
    "two patterns",
    { allOf: [{ type: "string", pattern: "^a" }, { pattern: "z$" }] },
    ['"az"', '"abcz"'],
    ['"ab"', '"bz"'],
  ],
  ["not an enum", { type: "string", not: { enum: ["a", "b"] } }, ['"c"', '"aa"', '""'], ['"a"', '"b"']],
  [
    "date",
    { type: "string", format: "date" },
    ['"2024-02-29"', '"1999-12-31"'],
    ['"2023-02-29"', '"2024-13-01"', '"2024-4-1"'],
  ],
  [
    "date-time",
    { type: "string", format: "date-time" },
    ['"2024-02-29T23:59:59Z"', '"2024-01-01T00:00:00.123+02:00"'],
    ['"2024-01-01 00:00:00Z"', '"2024-01-01T24:00:00Z"'],
  ],
  [
    "uuid",
    { type: "string", format: "uuid" },
    ['"123e4567-e89b-12d3-a456-426614174000"'],
    ['"123e4567e89b12d3a456426614174000"'],
  ],
  ["email", { type: "string", format: "email" }, ['"a.b+c@example.co.uk"'], ['"a@"', '"@b.c"', '"a b@c.d"']],
  [
    "ipv4",
    { type: "string", format: "ipv4" },
    ['"127.0.0.1"', '"255.255.255.255"'],
    ['"256.0.0.1"', '"1.2.3"', '"01.2.3.4"'],
  ],
  [
    "ipv6",
    { type: "string", format: "ipv6" },
    ['"::"', '"::1"', '"2001:db8::8:800:200c:417a"', '"1:2:3:4:5:6:7:8"'],
    ['"1::2::3"', '"1:2:3"', '"12345::"'],
  ],
  [
    "enum",
    { enum: ["a", 1, null, { x: [true] }, 'a"b'] },
    ['"a"', "1", "null", '{"x":[true]}', '{ "x": [ true ] }', '"a\\"b"'],
    ['"b"', "2", "{}", '"a'],
  ],
  ["enum under a type", { type: "string", enum: ["a", 1] }, ['"a"'], ["1"]],
  ["enum under bounds", { enum: [1, 5, 10], minimum: 3 }, ["5", "10"], ["1"]],
  ["const", { const: "é" }, ['"é"'], ['"\\u00e9"', '"e"']],
  [
    "required and optional properties",
    {
      type: "object",
      properties: { a: { type: "integer" }, b: { type: "boolean" }, c: true },
      required: ["b"],
    },
    ['{"b":true}', '{"a": 1, "b": false}', '{"a":1,"b":true,"c":[]}', '{\n  "b": true,\n  "c": null\n}'],
    ["{}", '{"a":1}', '{"b":true,"a":1}', '{"b":true,"d":1}', '{"b":true,}'],
  ],
  [
    "only optional properties",
    { type: "object", properties: { a: true, b: true } },
    ["{}", '{"b":1}', '{"a":1,"b":2}', "{ }"],
    ['{,"a":1}', '{"a":1,"a":2}'],
  ],
  [
    "required without a property",
    { type: "object", required: ["x"] },
    ['{"x":1}', '{"x":1,"y":2}'],
    ["{}", '{"y":1}'],
  ],
  [
    "additionalProperties",
    { type: "object", properties: { a: { type: "string" } }, additionalProperties: { type: "integer" } },
    ['{"a":"x","b":1}', '{"b":1,"c":2}', "{}"],
    ['{"b":"x"}', '{"b":1,"a":"x"}', '{"a":1}', '{"\\u0061":1}'],
  ],
  ["no additional properties", { type: "object", additionalProperties: false }, ["{}"], ['{"a":1}']],
  [
    "patternProperties",
    {
      type: "object",
      patternProperties: { "^n_": { type: "number" }, _s$: { type: "string" } },
      additionalProperties: false,
    },
    ['{"n_a":1}', '{"a_s":"x"}', "{}"],
    ['{"x":1}', '{"n_a":"x"}', '{"n_s":1}', '{"n_s":"x"}'],
  ],
  [
    "propertyNames",
    { type: "object", propertyNames: { enum: ["a", "b"] } },
    ['{"a":1}', '{"a":1,"b":2}'],
    ['{"c":1}'],
  ],
  [
    "minProperties and maxProperties",
    { type: "object", properties: { a: true, b: true, c: true }, minProperties: 2, maxProperties: 2 },
    ['{"a":1,"c":2}', '{"b":1,"c":1}'],
    ["{}", '{"a":1}', '{"a":1,"b":1,"c":1}'],
  ],
  [
    "maxProperties of additional ones",
    { type: "object", additionalProperties: true, maxProperties: 1 },
    ["{}", '{"a":1}'],
    ['{"a":1,"b":2}'],
  ],
  [
    "items",
    { type: "array", items: { type: "integer" } },
    ["[]", "[1]", "[1, 2,3]", "[\n  1,\n  2\n]"],
    ['["a"]', "[1,]", "[,1]", "[1"],
  ],
  [
    "minItems and maxItems",
    { type: "array", items: { const: 1 }, minItems: 2, maxItems: 3 },
    ["[1,1]", "[1,1,1]"],
    ["[]", "[1]", "[1,1,1,1]"],
  ],
  [
    "prefixItems",
    { type: "array", prefixItems: [{ type: "integer" }, { type: "string" }], items: { type: "null" } },
    ["[]", "[1]", '[1,"a"]', '[1,"a",null,null]'],
    ['["a"]', "[1,2]", '[1,"a",3]'],
  ],
  [
    "a closed tuple",
    { type: "array", prefixItems: [{ type: "integer" }], items: false, minItems: 1 },
    ["[1]"],
    ["[]", "[1,1]"],
  ],
  [
    "draft 7's tuple",
    { type: "array", items: [{ type: "integer" }], additionalItems: { type: "string" } },
    ["[1]", '[1,"a"]'],
    ["[1,1]"],
  ],
  [
    "uniqueItems of an enum",
    { type: "array", items: { enum: ["a", "b"] }, uniqueItems: true },
    ["[]", '["a"]', '["b","a"]'],
    ['["a","a"]'],
  ],
  [
    "anyOf",
    {
      anyOf: [
        { type: "integer", minimum: 5 },
        { type: "string", maxLength: 1 },
      ],
    },
    ["5", '"a"'],
    ["4", '"ab"', "null"],
  ],
  [
    "anyOf beside properties",
    {
      type: "object",
      properties: { k: { type: "string" } },
      required: ["k"],
      anyOf: [
        { properties: { k: { const: "a" } } },
        { properties: { v: { type: "integer" } }, required: ["v"] },
      ],
    },
    ['{"k":"a"}', '{"k":"z","v":1}'],
    ['{"k":"z"}'],
  ],
  ["oneOf by type", { oneOf: [{ type: "integer" }, { type: "string" }] }, ["1", '"a"'], ["null"]],
  [
    "oneOf by a tag",
    {
      oneOf: ["a", "b"].map((tag) => ({
        type: "object",
        properties: { t: { const: tag }, [tag]: { type: "integer" } },
        required: ["t"],
      })),
    },
    ['{"t":"a"}', '{"t":"b","b":1}'],
    ['{"t":"a","b":1}'],
  ],
  [
    "allOf",
    {
      allOf: [
        { type: "object", properties: { a: { minimum: 2 } }, required: ["a"] },
        { properties: { a: { type: "integer", maximum: 3 }, b: true } },
      ],
    },
    ['{"a":2}', '{"a":3,"b":1}'],
    ['{"a":4}', "{}", '{"a":"x"}'],
  ],
  [
    "allOf with a closed branch",
    {
      allOf: [
        { type: "object", properties: { a: true }, additionalProperties: false },
        { type: "object", properties: { b: true } },
      ],
    },
    ["{}", '{"a":1}'],
    ['{"b":1}'],
  ],
  [
    "$ref with siblings",
    { $defs: { n: { type: "integer" } }, $ref: "#/$defs/n", maximum: 3 },
    ["3"],
    ["4", '"a"'],
  ],
  ["$ref through escapes", { $defs: { "a/b~c%": { const: 1 } }, $ref: "#/$defs/a~1b~0c%25" }, ["1"], ["2"]],
  [
    "$anchor and $id",
    {
      $id: "https://x.test/s",
      $defs: { a: { $anchor: "here", type: "null" } },
      anyOf: [{ $ref: "#here" }, { $ref: "https://x.test/s#/$defs/a" }],
    },
    ["null"],
    ["1"],
  ],
  [
    "recursion",
    {
      type: "object",
      properties: { next: { anyOf: [{ $ref: "#" }, { type: "null" }] } },
      required: ["next"],
    },
    ['{"next":null}', '{"next":{"next":{"next":null}}}'],
    ["{}", '{"next":{}}'],
  ],
  [
    "mutual recursion",
    {
      $defs: {
        a: { type: "array", items: { $ref: "#/$defs/b" } },
        b: { type: "object", properties: { a: { $ref: "#/$defs/a" } } },
      },
      $ref: "#/$defs/a",
    },
    ["[]", '[{"a":[{}]}]'],
    ["[[]]", '{"a":[]}'],
  ],
  [
    "keywords that imply a type",
    { properties: { a: { minLength: 1 } }, required: ["a"] },
    ['{"a":"x"}'],
    ["1", '{"a":""}', '{"a":1}'],
  ],
  [
    "annotations",
    {
      type: "integer",
      title: "t",
      description: "d",
      default: "x",
      examples: [1],
      deprecated: true,
      "x-own": { if: 1 },
      markdown: "m",
    },
    ["1"],
    ['"x"'],
  ],
  [
    "hostile names",
    {
      type: "object",
      properties: { __proto__x: true, 'a"b\\': { type: "integer" }, "": { type: "null" } },
      required: ['a"b\\'],
    },
    ['{"a\\"b\\\\":1}', '{"a\\"b\\\\":1,"":null}'],
    ['{"a\\"b\\\\":"x"}'],
  ],
  [
    "if, then, else",
    {
      type: "object",
      properties: { kind: { enum: ["a", "b"] }, size: { type: "integer" } },
      required: ["kind"],
      if: { properties: { kind: { const: "a" } } },
      ...consequence({ required: ["size"] }),
      else: { properties: { size: false } },
    },
    ['{"kind":"a","size":1}', '{"kind":"b"}'],
    ['{"kind":"a"}', '{"kind":"b","size":1}', '{"kind":"c"}'],
  ],
  [
    "if without else",
    { type: "integer", if: { minimum: 10 }, ...consequence({ multipleOf: 10 }) },
    ["3", "10", "120", "-7"],
    ["11", "25"],
  ],
  [
    "dependentRequired",
    {
      type: "object",
      properties: { a: { type: "null" }, b: { type: "null" }, c: { type: "null" } },
      dependentRequired: { a: ["b", "c"] },
    },
    ["{}", '{"b":null}', '{"a":null,"b":null,"c":null}'],
    ['{"a":null}', '{"a":null,"b":null}'],
  ],
  [
    "dependentSchemas",
    {
      type: "object",
      properties: { card: { type: "string" }, street: { type: "string" } },
      dependentSchemas: { card: { required: ["street"], properties: { street: { minLength: 1 } } } },
    },
    ["{}", '{"street":""}', '{"card":"1","street":"x"}'],
    ['{"card":"1"}', '{"card":"1","street":""}'],
  ],
  [
    "contains",
    { type: "array", items: { type: "integer" }, contains: { minimum: 5 }, minContains: 2, maxContains: 3 },
    ["[5,6]", "[1,5,2,7,3]", "[5,5,5]"],
    ["[]", "[5]", "[5,6,7,8]", "[1,2,3]"],
  ],
  [
    "contains beside places of their own",
    { type: "array", prefixItems: [{ type: "null" }], items: { type: "integer" }, contains: { const: 7 } },
    ["[null,7]", "[null,1,7,2]"],
    ["[null]", "[7]", "[null,1]", "[]"],
  ],
  [
    "not a type",
    { not: { type: ["string", "object", "array"] } },
    ["1", "null", "true", "0.5"],
    ['"a"', "[]"],
  ],
  ["not integers", { type: "number", not: { type: "integer" } }, ["0.5", "-12.25"], ["1", "1.0", "-3"]],
  [
    "not an object with a member",
    { type: "object", not: { required: ["a"] } },
    ["{}", '{"b":1}'],
    ['{"a":1}'],
  ],
  [
    "not a list of one",
    { type: "array", items: { type: "integer" }, not: { const: [1, 2] } },
    ["[]", "[1]", "[2,1]", "[1,2,3]"],
    ["[1,2]", "[1, 2]"],
  ],
  [
    "not one object",
    { type: "object", not: { const: { a: 1 } } },
    ["{}", '{"a":2}', '{"b":1}', '{"a":1,"b":2}'],
    ['{"a":1}', '{"a": 1}'],
  ],
  ["not a number", { type: "integer", not: { enum: [3, 5] } }, ["2", "4", "6", "-3"], ["3", "5"]],
  ["not a multiple", { type: "integer", not: { multipleOf: 3 } }, ["1", "-5", "100"], ["3", "0", "-6"]],
  ["not a pattern", { type: "string", not: { pattern: "\\d" } }, ['"abc"'], ['"a1"']],
  ["one of two numbers", { oneOf: [{ type: "number" }, { type: "integer" }] }, ["1.5"], ["1", "1.0", '"a"']],
  [
    "one of two divisors",
    { type: "integer", oneOf: [{ multipleOf: 3 }, { multipleOf: 5 }] },
    ["3", "5", "-9"],
    ["15", "1", "0"],
  ],
  [
    "one of what no type keeps apart",
    { oneOf: [{ minimum: 2 }, { type: "string" }] },
    ["2", "3.5"],
    ['"a"', "1"],
  ],
  [
    "multiples of a quarter",
    { type: "number", multipleOf: 0.25 },
    ["1.25", "-0.5", "3", "0.50"],
    ["0.3", "1.125"],
  ],
  [
    "multiples of a hundredth in a range",
    { type: "number", multipleOf: 0.01, minimum: 0, maximum: 1 },
    ["0.5", "0.99", "1", "0"],
    ["0.07", "1.01", "0.005"],
  ],
  [
    "propertyNames beside properties",
    {
      type: "object",
      properties: { a: { type: "null" }, bb: { type: "null" } },
      propertyNames: { maxLength: 1 },
      additionalProperties: { type: "integer" },
    },
    ["{}", '{"a":null}', '{"a":null,"c":1}'],
    ['{"bb":null}', '{"cc":1}'],
  ],
  [
    "unevaluated members of another branch",
    {
      type: "object",
      allOf: [{ properties: { a: { type: "null" } } }],
      properties: { b: { type: "null" } },
      unevaluatedProperties: { type: "integer" },
    },
    ['{"b":null,"a":null,"c":1}', "{}"],
    ['{"c":null}', '{"a":1}'],
  ],
  [
    "unevaluated members of a cousin",
    { type: "object", allOf: [{ properties: { a: true } }, { unevaluatedProperties: false }] },
    ["{}"],
    ['{"a":1}'],
  ],
  [
    "unevaluatedItems",
    { type: "array", prefixItems: [{ type: "null" }], unevaluatedItems: { type: "integer" } },
    ["[]", "[null]", "[null,1,2]"],
    ["[1]", "[null,null]"],
  ],
  ["an enum beside a pattern", { enum: ["ab", "b", 3], pattern: "^a" }, ['"ab"', "3"], ['"b"']],
];

describe("the grammar of a JSON schema", () => {
  const ajv = new Ajv2020({ strict: false, validateFormats: false, logger: false, validateSchema: false });
  for (const [name, schema, good, bad] of cases) {
    it(name, () => {
      const accepts = schemaGrammar(schema);
      for (const text of good) assert.ok(accepts(text), `takes ${text}`);
      for (const text of bad) assert.ok(!accepts(text), `does not take ${text}`);
      if (
        JSON.stringify(schema).includes('exclusiveMaximum":true') ||
        JSON.stringify(schema).includes("additionalItems")
      )
        return;
      const validate = ajv.compile(schema as object | boolean);
      for (const text of good) assert.ok(validate(JSON.parse(text)), `ajv takes ${text}`);
    });
  }
});

describe("a schema that cannot be kept", () => {
  const refused: readonly (readonly [schema: JsonValue, message: RegExp])[] = [
    [{ type: "object", properties: { a: { if: 3 } } }, /#\/properties\/a\/if must be an object/],
    [{ type: "array", contains: {}, minContains: 3, maxContains: 2 }, /No text/],
    [{ type: "array", contains: { type: "null" }, maxContains: 9000 }, /#\/contains needs 18002 states/],
    [{ type: "array", uniqueItems: true }, /#\/uniqueItems is supported for items with an enum/],
    [{ dependentRequired: { a: [3] } }, /#\/dependentRequired\/a must be a list of property names/],
    [{ not: {} }, /No text/],
    [{ not: { not: { enum: [] } } }, /#\/not\/not\/enum|#\/enum|enum must be a list/],
    [{ type: "number", multipleOf: 0.01 }, /#\/multipleOf/],
    [{ type: "integer", multipleOf: 0 }, /#\/multipleOf/],
    [{ not: { uniqueItems: true } }, /#\/not\/uniqueItems is not supported where its opposite/],
    [{ not: { $ref: "#" } }, /makes more than 1024 combinations|No text/],
    [{ anyOf: [{ $ref: "#" }, { $ref: "#" }] }, /No text|combinations/],
    [{ type: "string", format: "postcode" }, /#\/format names "postcode"/],
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
