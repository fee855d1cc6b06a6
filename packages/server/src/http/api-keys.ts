import { createHash, timingSafeEqual } from "node:crypto";
import { OctavoError } from "@octavo/protocol";

/**
 * Bearer keys. Digests are compared instead of keys, and always all of them, so that the time taken tells neither
 * a key's length, nor how much of it was right, nor which one matched.
 */
export class ApiKeys {
  readonly #digests: readonly Buffer[];

  constructor(keys: readonly string[]) {
    this.#digests = keys.map(digest);
  }

  get required(): boolean {
    return this.#digests.length > 0;
  }

  /** Throws `unauthorized` unless the Authorization header carries one of the keys, or none are configured. */
  check(authorization: string | undefined): void {
    if (!this.required) return;
    const match = /^bearer +(.+)$/i.exec(authorization ?? "");
    const offered = digest(match?.[1]?.trim() ?? "");
    let valid = 0;
    for (const known of this.#digests) valid |= Number(timingSafeEqual(known, offered));
    if (valid === 1 && match !== null) return;
    const reason = authorization === undefined ? "no API key was sent" : "the API key is not valid";
    throw new OctavoError("unauthorized", `${reason}; send it as "Authorization: Bearer KEY"`);
  }
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text, "utf8").digest();
}
