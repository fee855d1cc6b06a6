/** The label shared by tenants without one of their own. */
export const otherTenants = "_other";

/**
 * Tenants' names as metric labels, limited in number: clients that choose tenant names could otherwise create unlimited
 * series. Configured tenants always have a label, others in order of arrival.
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
