import type { Sequence, SequenceAdapter } from "./sequence.js";

/**
 * Limits how many adapters run at a time. While a sequence waits because all slots are taken, later sequences are not
 * admitted under the adapter that has held its slot longest, so that this slot becomes free.
 */
export class AdapterSlots {
  readonly #maxAdapters: number;
  /** Adapters of running sequences, longest held first. */
  readonly #held = new Set<SequenceAdapter>();
  #closing: SequenceAdapter | undefined;

  constructor(maxAdapters: number) {
    this.#maxAdapters = maxAdapters;
  }

  /** Starts the admissions of a step. */
  begin(running: readonly Sequence[]): void {
    this.#held.clear();
    this.#closing = undefined;
    for (const { group } of running) if (group.adapter !== undefined) this.#held.add(group.adapter);
  }

  hasSlotFor({ group: { adapter } }: Sequence): boolean {
    if (adapter === undefined) return true;
    if (this.#held.has(adapter)) return adapter !== this.#closing;
    if (this.#held.size < this.#maxAdapters) return true;
    if (this.#closing === undefined) [this.#closing] = this.#held;
    return false;
  }

  admitted({ group: { adapter } }: Sequence): void {
    if (adapter !== undefined) this.#held.add(adapter);
  }
}
