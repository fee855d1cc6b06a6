import { createHash } from "node:crypto";
import { type JsonFields, OctavoError } from "@octavo/protocol";
import type { Operation } from "./exchange.js";

/** What the servers of one provider do about tenants, and whether the operator lets tenants share what a target keeps. */
export interface TargetTenancy {
  readonly tenants: "header" | "salt" | "none";
  readonly isShared: boolean;
}

/** The header in which an Octavo server takes the tenant from a gateway, and the names that it takes there. */
const tenantHeader = "x-tenant-id";
const tenantPattern = /^[A-Za-z0-9.:@/+=_-]{1,128}$/;
const salted: ReadonlySet<Operation> = new Set(["chat", "completions", "responses"]);

/** Names and values in turn. */
export function tenantHeaders({ tenants }: TargetTenancy, tenant: string | undefined): readonly string[] {
  if (tenants !== "header" || tenant === undefined) return [];
  return [tenantHeader, tenantPattern.test(tenant) ? tenant : `sha256:${digest(tenant)}`];
}

/**
 * What keeps one tenant's prompts apart from another's in a prefix cache: of the tenant and of the salt that the client sent. It is a
 * digest, so a salt that a client makes up is never another tenant's.
 */
export function tenantSalt(tenant: string | undefined, fields: JsonFields): string | undefined {
  const sent = fields["cache_salt"];
  const own = typeof sent === "string" && sent !== "" ? sent : undefined;
  return tenant === undefined ? own : digest(JSON.stringify([tenant, own ?? null]));
}

/**
 * Fields that a call of a tenant needs so that the target keeps it apart. Throws `unsupported_parameter` for a stored answer that the
 * target would give to any tenant who names it.
 */
export function tenantFields(
  { tenants, isShared }: TargetTenancy,
  tenant: string | undefined,
  operation: Operation,
  fields: JsonFields,
): JsonFields {
  if (tenant === undefined || isShared || tenants === "header") return {};
  for (const name of ["previous_response_id", "conversation"])
    if (operation === "responses" && (fields[name] ?? null) !== null)
      throw new OctavoError(
        "unsupported_parameter",
        `${name}: this target keeps the stored answers of all tenants together. Send the earlier turns as input.`,
        { param: name },
      );
  return tenants === "salt" && salted.has(operation) ? { cache_salt: tenantSalt(tenant, fields) } : {};
}

function digest(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
