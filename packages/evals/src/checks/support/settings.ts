import { OctavoError, parseWith } from "@octavo/protocol";
import type { z } from "zod";
import type { CheckName } from "../check.js";

/**
 * Reads the settings of a check with a schema whose every field has a default.
 *
 * @throws OctavoError `invalid_option` that names the check and the field
 */
export function parseSettings<Schema extends z.ZodType>(
  check: CheckName,
  schema: Schema,
  given: unknown,
): z.output<Schema> {
  try {
    return parseWith(schema, given ?? {});
  } catch (error) {
    const { message, param } = OctavoError.from(error);
    const said = param === undefined ? message.replace(/^the request body/, "they") : message;
    throw new OctavoError("invalid_option", `settings of the check ${check}: ${said}`, {
      ...(param === undefined ? {} : { param }),
    });
  }
}
