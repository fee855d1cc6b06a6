import { OctavoError, type ResponseObject } from "@octavo/protocol";
import type { DraftMessage } from "./from-responses.js";

/** A response that can be fetched or continued. */
export interface StoredResponse {
  readonly response: ResponseObject;
  /** The conversation including the answer; undefined until it is complete. */
  readonly conversation: readonly DraftMessage[] | undefined;
  /** Cancels a background response. */
  readonly cancel?: () => ResponseObject;
}

export interface ResponseStoreLimits {
  readonly maxResponses: number;
  /** Total length of all conversations and answers, in characters of JSON. */
  readonly maxLength: number;
}

interface Entry {
  readonly stored: StoredResponse;
  readonly length: number;
}

/** Responses by id, in memory; the oldest are dropped beyond the limits. */
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
    const message = `there is no response ${JSON.stringify(id.slice(0, 100))}; it was not stored, or was dropped for newer ones`;
    throw new OctavoError("not_found", message, param === undefined ? {} : { param });
  }

  #remove(id: string): void {
    const entry = this.#entries.get(id);
    if (entry === undefined) return;
    this.#entries.delete(id);
    this.#length -= entry.length;
  }
}
