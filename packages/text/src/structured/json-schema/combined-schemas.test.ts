import { consequence, testSchemas } from "../testing/schema-cases.js";

testSchemas("the grammar of schemas combined", [
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
]);
