import { z } from "zod";
import { wireFormOf } from "./fields.js";

/** JSON Schema (2020-12) of what a request schema takes. Checks that JSON Schema cannot express are left out. */
export function wireSchema(schema: z.ZodType): Readonly<Record<string, unknown>> {
  const { $schema: _, ...body } = z.toJSONSchema(schema, {
    io: "input",
    unrepresentable: "any",
    override: ({ zodSchema, jsonSchema }) => {
      const form = wireFormOf(zodSchema);
      if (form === undefined) return;
      const { items, anyOf, ...rest } = form;
      Object.assign(jsonSchema, rest);
      if (items !== undefined) Object.assign(jsonSchema, { type: "array", items: wireSchema(items) });
      if (anyOf !== undefined) Object.assign(jsonSchema, { anyOf: anyOf.map(wireSchema) });
    },
  });
  return body;
}
