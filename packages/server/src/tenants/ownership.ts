import type { KeyIdentity } from "./tenant-settings.js";

/** An API key that a request carries. */
export interface CheckedKey extends KeyIdentity {
  /** Which of the server's keys it is. */
  readonly index: number;
}

/**
 * Whose something is: responses, serving records, cached prefixes. Requests with the same owner find, change and evict the
 * same things, and no others.
 */
export type OwnerId = string & { readonly ownerId: unique symbol };

/** The owner of what comes without a key and without a tenant. */
export const anyone = "anyone" as OwnerId;

/**
 * The owner behind a key and a tenant's name, either of which may be missing. A tenant is one owner under all of its keys. A key
 * that is no tenant's is an owner of its own, divided by the names it gives, unless the operator lets it speak for tenants.
 * Names hold no spaces, so that none can imitate another owner.
 */
export function ownerOf(
  key: CheckedKey | undefined,
  tenant: string | undefined,
  speaksForTenants: boolean,
): OwnerId {
  const byTenant = tenant === undefined ? "" : `tenant ${tenant}`;
  if (key === undefined) return byTenant === "" ? anyone : (byTenant as OwnerId);
  if (tenant !== undefined && (speaksForTenants || key.tenant === tenant)) return byTenant as OwnerId;
  const byKey = key.tenant === undefined ? `key ${key.index}` : `tenant ${key.tenant}`;
  return `${byKey} ${byTenant}`.trim() as OwnerId;
}

/** Whether a key is the operator's: neither a tenant's nor one that speaks for tenants. */
export function isOperators(key: KeyIdentity): boolean {
  return key.tenant === undefined && key.tenantFrom === undefined;
}
