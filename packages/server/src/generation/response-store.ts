import { OctavoError, type ResponseObject } from "@octavo/protocol";
import type { DraftMessage } from "./from-responses.js";

/** A response that can be asked for again or gone on from. */
export interface StoredResponse {
  readonly response: ResponseObject;
  /** The conversation up to and with the answer; undefined while it is not complete. */
  readonly conversation: readonly DraftMessage[] | undefined;
  /** Ends it; only of one that runs in the background. */
  readonly cancel?: () => ResponseObject;
}

export interface ResponseStoreLimits {
  readonly maxResponses: number;
  /** Of all conversations and answers together, in characters of their JSON. */
  readonly maxLength: number;
}

interface Entry {
  readonly stored: StoredResponse;
  readonly length: number;
}

/** Responses by id, in memory: the oldest go when there are too many or they take too much room. */
export class ResponseStore {
  readonly #limits: ResponseStoreLimits;
  readonly #entries = new Map<string, Entry>();
  #length = 0;

  constructor(limits: ResponseStoreLimits = { maxResponses: 1000, maxLength: 64 * 1024 * 1024 }) {
    this.#limits = limits;
  }

  get size(): number {
    return this.#entries.size;
  }

  set(id: string, stored: StoredResponse): void {
    this.#remove(id);
    const length = JSON.stringify([stored.response, stored.conversation]).length;
    this.#entries.set(id, { stored, length });
    this.#length += length;
    for (const oldest of this.#entries.keys()) {
      if (this.#entries.size <= this.#limits.maxResponses && this.#length <= this.#limits.maxLength) break;
      this.#remove(oldest);
    }
  }

  /** Throws `not_found`. */
  get(id: string, param?: string): StoredResponse {
    const entry = this.#entries.get(id);
    if (entry !== undefined) return entry.stored;
    const message = `there is no response ${JSON.stringify(id.slice(0, 100))}; it was not stored, or had to make room`;
    throw new OctavoError("not_found", message, param === undefined ? {} : { param });
  }

  #remove(id: string): void {
    const entry = this.#entries.get(id);
    if (entry === undefined) return;
    this.#entries.delete(id);
    this.#length -= entry.length;
  }
}
