import { testSchemas } from "../testing/schema-cases.js";

testSchemas("the grammar of a schema of objects and arrays", [
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
]);
