import { OctavoError } from "@octavo/protocol/errors";
import type { ZodType } from "zod";
import type { JsonObject } from "@octavo/text/structured/grammar";

/** What zod, valibot and others implement (standardschema.dev): enough of it to check values and to know their type. */
export interface CheckedSchema<Output = unknown> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => SchemaResult<Output> | Promise<SchemaResult<Output>>;
    readonly types?: { readonly input: unknown; readonly output: Output } | undefined;
  };
}

type SchemaResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | {
      readonly issues: readonly {
        readonly message: string;
        readonly path?: readonly unknown[] | undefined;
      }[];
    };

/** zod, or JSON Schema. */
export type ValueSchema<Output = unknown> = CheckedSchema<Output> | JsonObject;

function isChecked(schema: ValueSchema): schema is CheckedSchema {
  return typeof schema["~standard"] === "object" && schema["~standard"] !== null;
}

/** The JSON Schema of what is accepted. Throws `invalid_option` for a library that cannot say it. */
export async function jsonSchemaOf(schema: ValueSchema, param: string): Promise<JsonObject> {
  if (!isChecked(schema)) return schema;
  const { vendor } = schema["~standard"];
  if (vendor !== "zod" || !("_zod" in schema))
    throw new OctavoError(
      "invalid_option",
      `${param}: give a schema of zod 4, or JSON Schema; this one is of ${vendor}`,
      {
        param,
      },
    );
  const { toJSONSchema } = await import("zod");
  try {
    const { $schema: _, ...json } = toJSONSchema(schema as unknown as ZodType, { io: "input" });
    return json as unknown as JsonObject;
  } catch (cause) {
    throw new OctavoError("invalid_option", `${param}: ${OctavoError.from(cause).message}`, { param, cause });
  }
}

/** The value as the schema gives it back; the issues in words where it does not accept it. JSON Schema is held by the grammar already. */
export async function checkValue<Output>(
  schema: ValueSchema<Output>,
  value: unknown,
): Promise<{ readonly value: Output } | { readonly problem: string }> {
  if (!isChecked(schema)) return { value: value as Output };
  const result = await schema["~standard"].validate(value);
  if (result.issues === undefined) return { value: result.value };
  const problems = result.issues.map(({ message, path = [] }) =>
    [path.join("."), message].filter(Boolean).join(": "),
  );
  return { problem: problems.join("; ") };
}
