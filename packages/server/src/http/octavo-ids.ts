import { createHmac, randomBytes, randomUUID, timingSafeEqual } from "node:crypto";
import type { OwnerId } from "../tenants/ownership.js";

const idLength = 36;
/** The last group of a UUID, which marks the owner. */
const markStart = 24;

/**
 * Ids of exchanges, under which their serving records are found. A record names the requests that slowed its own, so an id must
 * work only for its own owner: the last group of the id is an HMAC of its start and the owner under a secret of this process. No
 * id has to be stored to check whose it is.
 */
export class OctavoIds {
  readonly #secret = randomBytes(32);

  make(owner: OwnerId): string {
    const start = randomUUID().slice(0, markStart);
    return start + this.#mark(start, owner);
  }

  /** Whether an id, with or without a prompt's number appended, was made for this owner. */
  isOf(id: string, owner: OwnerId): boolean {
    const expected = Buffer.from(this.#mark(id.slice(0, markStart), owner));
    const given = Buffer.from(id.slice(markStart, idLength));
    return given.length === expected.length && timingSafeEqual(given, expected);
  }

  #mark(start: string, owner: OwnerId): string {
    const digest = createHmac("sha256", this.#secret).update(start + owner, "utf8");
    return digest.digest("hex").slice(0, idLength - markStart);
  }
}
