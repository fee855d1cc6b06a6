import { defaultTenant } from "@octavo/engine";
import { noLabel, otherLabel } from "../metrics/bounded-labels.js";

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

/** Values of these labels that name nobody. */
const nobody = [otherTenants, noLabel, otherLabel, defaultTenant];

/** Metrics in Prometheus' text format with pseudonyms for what callers are called and call their features. */
export function hideTenants(exposition: string, pseudonym: (name: string) => string): string {
  const shown = new Map<string, string>();
  return exposition.replaceAll(
    /(?<=[{,])(tenant|feature)="((?:[^"\\]|\\.)*)"/g,
    (whole, label: string, value: string) => {
      if (nobody.includes(value)) return whole;
      const hidden = shown.get(whole) ?? `${label}="${pseudonym(`${label} ${value}`)}"`;
      shown.set(whole, hidden);
      return hidden;
    },
  );
}
