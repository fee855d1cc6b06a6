/** The label of all tenants that have none of their own. */
export const otherTenants = "_other";

/**
 * Tenants' names as metric labels, of which there may only be so many: whoever can name tenants could otherwise make
 * endless series. The first to come have their own label, those that the operator configured always.
 */
export class TenantLabels {
  readonly #most: number;
  readonly #labels: Set<string>;

  constructor(configured: Iterable<string> = [], most = 100) {
    this.#labels = new Set(configured);
    this.#most = Math.max(most, this.#labels.size);
  }

  of(tenant: string): string {
    if (this.#labels.has(tenant)) return tenant;
    if (this.#labels.size >= this.#most) return otherTenants;
    this.#labels.add(tenant);
    return tenant;
  }
}
