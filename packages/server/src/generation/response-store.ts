import { OctavoError, type ResponseObject } from "@octavo/protocol";
import type { OwnerId } from "../tenants/ownership.js";
import type { DraftMessage } from "./from-responses.js";

/** A response that can be fetched or continued. */
export interface StoredResponse {
  readonly response: ResponseObject;
  /** The conversation including the answer; undefined until it is complete. */
  readonly conversation: readonly DraftMessage[] | undefined;
  /** Cancels a background response. */
  readonly cancel?: () => ResponseObject;
}

interface Amount {
  readonly responses: number;
  /** Total length of conversations and answers, in characters of JSON. */
  readonly length: number;
}

export interface ResponseStoreLimits {
  /** The share of one owner. */
  readonly each: Amount;
  /** All owners together. */
  readonly total: Amount;
}

const defaultLimits: ResponseStoreLimits = {
  each: { responses: 1000, length: 64 * 2 ** 20 },
  total: { responses: 10_000, length: 256 * 2 ** 20 },
};

interface Entry {
  readonly stored: StoredResponse;
  readonly length: number;
}

/** The responses of one owner, oldest first. */
class Shelf {
  readonly entries = new Map<string, Entry>();
  length = 0;

  get responses(): number {
    return this.entries.size;
  }

  add(id: string, entry: Entry): void {
    this.entries.set(id, entry);
    this.length += entry.length;
  }

  remove(id: string | undefined): void {
    const entry = id === undefined ? undefined : this.entries.get(id);
    if (id === undefined || entry === undefined) return;
    this.entries.delete(id);
    this.length -= entry.length;
  }

  removeOldest(): void {
    this.remove(this.entries.keys().next().value);
  }
}

/**
 * Responses by owner and id, in memory. Beyond its share an owner loses its own oldest ones. Beyond the total, the owner with the most
 * loses its oldest ones: an owner with no more than the total divided by the number of owners loses none to others.
 */
export class ResponseStore {
  readonly #limits: ResponseStoreLimits;
  readonly #shelves = new Map<OwnerId, Shelf>();

  constructor(limits: ResponseStoreLimits = defaultLimits) {
    this.#limits = limits;
  }

  get size(): number {
    return this.#total("responses");
  }

  set(owner: OwnerId, id: string, stored: StoredResponse): void {
    const shelf = this.#shelves.get(owner) ?? new Shelf();
    this.#shelves.set(owner, shelf);
    shelf.remove(id);
    shelf.add(id, { stored, length: JSON.stringify([stored.response, stored.conversation]).length });
    const { each, total } = this.#limits;
    while (shelf.responses > each.responses || shelf.length > each.length) shelf.removeOldest();
    for (const measure of ["responses", "length"] as const) {
      while (this.#total(measure) > total[measure]) this.#largest(measure)?.removeOldest();
    }
    for (const [of, { responses }] of this.#shelves) if (responses === 0) this.#shelves.delete(of);
  }

  /** Throws `not_found`, also for what another owner stored. */
  get(owner: OwnerId, id: string, param?: string): StoredResponse {
    const entry = this.#shelves.get(owner)?.entries.get(id);
    if (entry !== undefined) return entry.stored;
    const message = `there is no response ${JSON.stringify(id.slice(0, 100))}; it was not stored, or was dropped for newer ones`;
    throw new OctavoError("not_found", message, param === undefined ? {} : { param });
  }

  #total(measure: keyof Amount): number {
    let sum = 0;
    for (const shelf of this.#shelves.values()) sum += shelf[measure];
    return sum;
  }

  #largest(measure: keyof Amount): Shelf | undefined {
    let largest: Shelf | undefined;
    for (const shelf of this.#shelves.values())
      if (largest === undefined || shelf[measure] > largest[measure]) largest = shelf;
    return largest;
  }
}
