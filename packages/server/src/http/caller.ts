import type { IncomingHttpHeaders } from "node:http";

/** Names that callers give: short and plain, since they become labels, columns and log fields. */
const tagPattern = /^[\w.:@/+=-]{1,128}$/;

/** Undefined for what is no name. */
export function tagOf(value: unknown): string | undefined {
  return typeof value === "string" && tagPattern.test(value) ? value : undefined;
}

/** Whom a request is accounted to. */
export function tenantOf(headers: IncomingHttpHeaders): string | undefined {
  return tagOf(headers["x-tenant-id"]);
}

/** What the caller uses the model for, as it says. */
export function featureOf(headers: IncomingHttpHeaders): string | undefined {
  return tagOf(headers["x-octavo-feature"]);
}
