import { OctavoError } from "@octavo/protocol/errors";
import { checkValue, type ValueSchema } from "./schema.js";

export { jsonSchemaOf } from "./schema.js";

/** The value of an answer that was generated under a schema. Throws `output_invalid`. */
export async function checkedObject<T>(
  schema: ValueSchema<T>,
  {
    text,
    sequences,
  }: { readonly text: string; readonly sequences: readonly { readonly finishReason: string }[] },
): Promise<T> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    const why =
      sequences[0]?.finishReason === "length" ? "it was cut off; allow more maxTokens" : "it is not JSON";
    throw new OctavoError("output_invalid", `the answer does not fit the schema: ${why}`, { cause });
  }
  const checked = await checkValue(schema, value);
  if ("problem" in checked)
    throw new OctavoError("output_invalid", `the answer does not fit the schema: ${checked.problem}`);
  return checked.value;
}
