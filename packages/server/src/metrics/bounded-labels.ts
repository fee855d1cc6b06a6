/** Names given by callers cannot contain parentheses, so these cannot be forged. */
export const noLabel = "(none)";
export const otherLabel = "(other)";

export interface BoundedLabelsOptions {
  readonly maxTenants: number;
  /** Per tenant, so that none uses up the others' share. */
  readonly maxFeatures: number;
}

/**
 * Tenants and features as label values. Callers who send ever new names create no more series than the limits allow: later names
 * are counted together under `(other)`.
 */
export class BoundedLabels {
  readonly #options: BoundedLabelsOptions;
  readonly #features = new Map<string, Set<string>>([
    [noLabel, new Set([noLabel])],
    [otherLabel, new Set([noLabel])],
  ]);

  constructor(options: BoundedLabelsOptions) {
    this.#options = options;
  }

  resolve(
    tenant: string = noLabel,
    feature: string = noLabel,
  ): { readonly tenant: string; readonly feature: string } {
    const known = this.tenant(tenant);
    const features = this.#features.get(known);
    if (features === undefined || features.has(feature)) return { tenant: known, feature };
    if (features.size > this.#options.maxFeatures) return { tenant: known, feature: otherLabel };
    features.add(feature);
    return { tenant: known, feature };
  }

  tenant(tenant: string = noLabel): string {
    if (this.#features.has(tenant)) return tenant;
    if (this.#features.size >= this.#options.maxTenants + 2) return otherLabel;
    this.#features.set(tenant, new Set([noLabel]));
    return tenant;
  }
}
