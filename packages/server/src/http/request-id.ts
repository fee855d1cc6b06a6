import { randomUUID } from "node:crypto";
import { tagOf } from "./caller.js";

/**
 * The id that is echoed and logged: the client's own if it is valid, otherwise a generated one.
 * It is never a key inside the engine: two clients may send the same id.
 */
export function resolveRequestId(header: string | readonly string[] | undefined): string {
  return tagOf(header) ?? randomUUID();
}
