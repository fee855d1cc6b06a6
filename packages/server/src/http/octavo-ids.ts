import { createHmac, randomBytes, randomUUID, timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";

const idLength = 36;
/** A UUID's last group tells the key. */
const markStart = 24;

/**
 * Ids of exchanges, by which their serving records are found. A record names the requests that slowed its own, so knowing an id
 * must not be enough where several API keys are in use: the end of an id is then made of its beginning and the key, with a secret
 * of this process. Nothing has to be remembered of an id to tell whose it is.
 */
export class OctavoIds {
  readonly #secret: Buffer | undefined;

  constructor(numKeys: number) {
    this.#secret = numKeys > 1 ? randomBytes(32) : undefined;
  }

  /** For a request with these headers, whose key may yet turn out not to be valid. */
  make(headers: IncomingHttpHeaders): string {
    const id = randomUUID();
    if (this.#secret === undefined) return id;
    const start = id.slice(0, markStart);
    return start + mark(this.#secret, start, headers);
  }

  /** Whether an id, or one with the number of a prompt behind it, was made for a request under the key in these headers. */
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
