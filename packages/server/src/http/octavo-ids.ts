import { createHmac, randomBytes, randomUUID, timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";

const idLength = 36;
/** The last group of a UUID, which marks the key. */
const markStart = 24;

/**
 * Ids of exchanges, under which their serving records are found. A record names the requests that slowed its own, so with several
 * API keys an id must work only for its own key: the last group of the id is an HMAC of its start and the key under a secret of
 * this process. No id has to be stored to check whose it is.
 */
export class OctavoIds {
  readonly #secret: Buffer | undefined;

  constructor(numKeys: number) {
    this.#secret = numKeys > 1 ? randomBytes(32) : undefined;
  }

  /** An id for a request with these headers, whose key has not been checked yet. */
  make(headers: IncomingHttpHeaders): string {
    const id = randomUUID();
    if (this.#secret === undefined) return id;
    const start = id.slice(0, markStart);
    return start + mark(this.#secret, start, headers);
  }

  /** Whether an id, with or without a prompt's number appended, was made for the key in these headers. */
  isOf(id: string, headers: IncomingHttpHeaders): boolean {
    if (this.#secret === undefined) return true;
    const expected = Buffer.from(mark(this.#secret, id.slice(0, markStart), headers));
    const given = Buffer.from(id.slice(markStart, idLength));
    return given.length === expected.length && timingSafeEqual(given, expected);
  }
}

function mark(secret: Buffer, start: string, headers: IncomingHttpHeaders): string {
  const { authorization, "x-api-key": key } = headers;
  const offered = authorization?.replace(/^bearer +/i, "") ?? (typeof key === "string" ? key : "");
  const digest = createHmac("sha256", secret).update(start + offered.trim(), "utf8");
  return digest.digest("hex").slice(0, idLength - markStart);
}
