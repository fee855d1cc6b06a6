import { isUtf8 } from "node:buffer";
import { type JsonFields, OctavoError } from "@octavo/protocol";

/**
 * A request's JSON body: the bytes as they came, and its fields. The bytes are forwarded as long as nobody changes a field;
 * changed fields are written at the end, so that only a changed body pays for being serialised.
 */
export class RequestBody {
  readonly bytes: Buffer;
  #fields: JsonFields;
  #isChanged = false;

  /** Throws `invalid_json` for a body that is not a JSON object. */
  constructor(bytes: Buffer) {
    this.bytes = bytes;
    this.#fields = parseFields(bytes);
  }

  get fields(): JsonFields {
    return this.#fields;
  }

  /** False while `bytes` say all there is. */
  get isChanged(): boolean {
    return this.#isChanged;
  }

  /** Replaces fields of the top level; a value of undefined removes the field. */
  change(changes: JsonFields): void {
    this.#fields = withFields(this.#fields, changes);
    this.#isChanged = true;
  }
}

/** A copy with some fields replaced; those that become undefined are gone. */
export function withFields(fields: JsonFields, changes: JsonFields): JsonFields {
  const changed: Record<string, unknown> = { ...fields, ...changes };
  for (const [name, value] of Object.entries(changes)) if (value === undefined) delete changed[name];
  return changed;
}

function parseFields(bytes: Buffer): JsonFields {
  // readers put different characters in place of bytes that are no UTF-8
  if (!isUtf8(bytes)) throw new OctavoError("invalid_json", "The body is not valid UTF-8.");
  let value: unknown;
  try {
    value = JSON.parse(bytes.toString("utf8"));
  } catch (cause) {
    throw new OctavoError("invalid_json", `The body is not JSON: ${(cause as Error).message}`, { cause });
  }
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new OctavoError("invalid_json", "The body must be a JSON object.");
  return value as JsonFields;
}
