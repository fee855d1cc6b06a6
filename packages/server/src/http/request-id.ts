import { randomUUID } from "node:crypto";

const allowed = /^[\w.:@/+=-]{1,128}$/;

/**
 * The id that is echoed and logged: the client's own when it is short and plain, else a new one.
 * It is never used as a key inside the engine, so that two requests with one id cannot meet.
 */
export function resolveRequestId(header: string | readonly string[] | undefined): string {
  return typeof header === "string" && allowed.test(header) ? header : randomUUID();
}
