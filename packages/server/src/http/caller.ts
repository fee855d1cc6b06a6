import { tenantPattern } from "../tenants/tenant-settings.js";

/** A name given by a caller, which becomes a label, a column and a log field; undefined for a value that cannot be one. */
export function tagOf(value: unknown): string | undefined {
  return typeof value === "string" && tenantPattern.test(value) ? value : undefined;
}
