import assert from "node:assert/strict";
import test from "node:test";
import { OctavoError } from "@octavo/protocol";
import type { JsonSchema } from "../../cases/eval-case.js";
import { evaluatorTable } from "../table.js";
import { sampleOf, scoreOf, valueOf } from "../testing/sample.js";
import { jsonEvaluators } from "./json-evaluators.js";
import { readJson } from "./read-json.js";
import { schemaCheck } from "./schema-validator.js";

const fenced = 'Here:\n```json\n{"a": 1}\n```\nDone.';

const containsId = {
  name: "contains_json",
  options: { schema: { type: "object", properties: { id: { type: "integer" } }, required: ["id"] } },
};

test("JSON is told from what only contains it", async () => {
  for (const [spec, output, value] of [
    ["is_json", '{"a": [1, 2]}', 1],
    ["is_json", " 3 ", 1],
    ["is_json", "", 0],
    ["is_json", "{'a': 1}", 0],
    ["is_json", '{"a": 1} trailing', 0],
    ["is_json", fenced, 0],
    [{ name: "is_json", options: { fenced: true } }, fenced, 1],
    ["contains_json", fenced, 1],
    ["contains_json", 'set {x} to {"a": "}"} now', 1],
    ["contains_json", "no { json ] here", 0],
    [containsId, '{"a": 1} and {"id": 2}', 1],
    [containsId, '{"a": 1} and {"id": "2"}', 0],
    ["json_schema", "{}", "skipped"],
  ] as const) {
    assert.equal(await valueOf(jsonEvaluators, spec, sampleOf({ output })), value, output);
  }
});

test("a schema's violation is named with its path", async () => {
  const schema = {
    type: "object",
    properties: { age: { type: "integer" } },
    required: ["age"],
    additionalProperties: false,
  };
  const [evaluator] = evaluatorTable.create(["json_schema"]);
  const reasonOf = async (output: string): Promise<string | undefined> => {
    const score = await scoreOf(evaluator!, sampleOf({ output, case: { expected: { schema } } }));
    assert.ok(score.status === "scored");
    assert.equal(score.passed, score.reason === undefined);
    return score.reason;
  };
  assert.equal(await reasonOf('{"age": 3}'), undefined);
  assert.equal(
    await reasonOf('{"age": 3.5}'),
    '/age: Instance type "number" is invalid. Expected "integer".',
  );
  assert.equal(await reasonOf("{}"), 'the value: Instance does not have required property "age".');
  assert.match(
    (await reasonOf('{"age": 3, "x": 1}')) ?? "",
    /Property "x" does not match additional properties/,
  );
  assert.match((await reasonOf("age: 3")) ?? "", /not JSON/);
});

test("draft-07 and 2020-12 differ where they should", () => {
  const tuple = [1, "a"];
  const wrong = ["a", 1];
  const modern = schemaCheck({ prefixItems: [{ type: "number" }, { type: "string" }] });
  const older = schemaCheck({
    $schema: "http://json-schema.org/draft-07/schema#",
    items: [{ type: "number" }, { type: "string" }],
  });
  for (const check of [modern, older]) {
    assert.equal(check(tuple), undefined);
    assert.match(check(wrong) ?? "", /^\/0: Instance type "string" is invalid/);
  }
});

test("a schema that cannot be used is the dataset's fault, not the model's", async () => {
  const schemas: readonly (readonly [JsonSchema, RegExp])[] = [
    [{ type: "objekt" }, /cannot be used/],
    [{ $ref: "https://example.com/other.json" }, /can't resolve reference/],
    [{ $schema: "http://json-schema.org/draft-04/schema#" }, /draft-07 and draft-06 are understood/],
    [{ $async: true }, /asynchronous/],
    [{ enum: ["x".repeat(300_000)] }, /at most 262144/],
  ];
  const [evaluator] = evaluatorTable.create(["json_schema"]);
  for (const [schema, message] of schemas) {
    const score = await scoreOf(evaluator!, sampleOf({ output: "{}", case: { expected: { schema } } }));
    assert.ok(score.status === "failed", JSON.stringify(schema).slice(0, 80));
    assert.equal(score.code, "dataset_invalid");
    assert.match(score.reason, message);
    assert.throws(() => evaluatorTable.create([{ name: "json_schema", options: { schema } }]), OctavoError);
  }
});

test("hostile outputs and patterns are bounded", async () => {
  const deep = "[".repeat(500_000) + "]".repeat(500_000);
  assert.deepEqual(readJson(deep), { problem: "it is nested deeper than 256 levels" });
  assert.equal(await valueOf(jsonEvaluators, "contains_json", sampleOf({ output: "[{".repeat(500_000) })), 0);
  assert.ok("value" in readJson(JSON.stringify("[".repeat(1000))));
  const schema = { type: "string", pattern: "^(a+)+$" };
  const [evaluator] = evaluatorTable.create(["json_schema"]);
  const output = JSON.stringify(`${"a".repeat(50)}!`);
  const score = await scoreOf(evaluator!, sampleOf({ output, case: { expected: { schema } } }));
  assert.equal(score.status === "failed" ? score.code : score.status, "deadline_exceeded");
  const recursive = {
    $defs: { node: { type: "array", items: { $ref: "#/$defs/node" } } },
    $ref: "#/$defs/node",
  };
  const nested = "[".repeat(250) + "]".repeat(250);
  assert.equal(
    await valueOf(
      jsonEvaluators,
      "json_schema",
      sampleOf({ output: nested, case: { expected: { schema: recursive } } }),
    ),
    1,
  );
});
