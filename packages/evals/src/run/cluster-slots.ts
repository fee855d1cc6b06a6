import type { EvalCase } from "../cases/eval-case.js";

/** Most clusters; further ones are merged. */
export const maxSlots = 512;

/**
 * Where each cluster's sums are kept. The first clusters have a slot each; later ones share slots by a hash of their name,
 * always the same: what shares a slot is resampled together, which keeps slots independent of each other and memory bounded
 * however many cases there are.
 */
export class ClusterSlots {
  readonly #own = new Map<string, number>();
  /** Whether any two cases can share a cluster. */
  hasClusters = false;

  slotOf({ id, cluster }: EvalCase): number {
    if (cluster !== undefined) this.hasClusters = true;
    const name = cluster === undefined ? `case ${id}` : `cluster ${cluster}`;
    const known = this.#own.get(name);
    if (known !== undefined) return known;
    if (this.#own.size >= maxSlots) return hash(name) % maxSlots;
    this.#own.set(name, this.#own.size);
    return this.#own.size - 1;
  }
}

/** FNV-1a, 32 bits. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) value = Math.imul(value ^ text.charCodeAt(at), 0x01000193);
  return value >>> 0;
}
