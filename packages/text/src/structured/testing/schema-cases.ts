import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Ajv2020 } from "ajv/dist/2020.js";
import type { JsonObject, JsonValue } from "../grammar.js";
import { schemaGrammar } from "./byte-grammar.js";

/** In the manner of the JSON Schema Test Suite: a schema, texts that it must take, texts that it must not. */
export type SchemaCase = readonly [
  name: string,
  schema: JsonValue,
  good: readonly string[],
  bad: readonly string[],
];

/** `then` of a schema, a key that an object that could be awaited must not be written with. */
export const consequence = (schema: JsonValue): JsonObject =>
  JSON.parse(`{"then":${JSON.stringify(schema)}}`) as JsonObject;

/** Holds the grammar of each schema to its texts, and the texts to a validator. */
export function testSchemas(subject: string, cases: readonly SchemaCase[]): void {
  describe(subject, () => {
    const ajv = new Ajv2020({ strict: false, validateFormats: false, logger: false, validateSchema: false });
    for (const [name, schema, good, bad] of cases) {
      it(name, () => {
        const accepts = schemaGrammar(schema);
        for (const text of good) assert.ok(accepts(text), `takes ${text}`);
        for (const text of bad) assert.ok(!accepts(text), `does not take ${text}`);
        if (isOfAnOldDraft(schema)) return;
        const validate = ajv.compile(schema as object | boolean);
        for (const text of good) assert.ok(validate(JSON.parse(text)), `ajv takes ${text}`);
      });
    }
  });
}

function isOfAnOldDraft(schema: JsonValue): boolean {
  const text = JSON.stringify(schema);
  return text.includes('exclusiveMaximum":true') || text.includes("additionalItems");
}
