import { createHash, timingSafeEqual } from "node:crypto";
import { OctavoError } from "@octavo/protocol";
import type { KeyIdentity, TenantKey } from "../tenants/tenant-settings.js";

/**
 * Bearer keys and the identities of their holders. Digests are compared instead of keys, and always all of them, so that
 * timing reveals neither a key's length, nor how much of it was right, nor which one matched.
 */
export class ApiKeys {
  readonly #digests: readonly Buffer[];
  readonly #identities: readonly KeyIdentity[];

  constructor(keys: readonly string[], tenantKeys: readonly TenantKey[] = []) {
    const all: readonly TenantKey[] = [...keys.map((key) => ({ key })), ...tenantKeys];
    this.#digests = all.map((entry) =>
      "key" in entry ? digest(entry.key) : Buffer.from(entry.sha256, "hex"),
    );
    this.#identities = all;
  }

  get required(): boolean {
    return this.#digests.length > 0;
  }

  /**
   * Throws `unauthorized` unless the Authorization header carries one of the keys, or none are configured. Returns what is
   * known of the key.
   */
  check(authorization: string | undefined): KeyIdentity | undefined {
    if (!this.required) return undefined;
    const match = /^bearer +(.+)$/i.exec(authorization ?? "");
    const offered = digest(match?.[1]?.trim() ?? "");
    let valid = -1;
    for (let index = this.#digests.length - 1; index >= 0; index -= 1)
      valid += Number(timingSafeEqual(this.#digests[index]!, offered)) * (index - valid);
    if (valid >= 0 && match !== null) return this.#identities[valid];
    const reason = authorization === undefined ? "no API key was sent" : "the API key is not valid";
    throw new OctavoError("unauthorized", `${reason}; send it as "Authorization: Bearer KEY"`);
  }
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text, "utf8").digest();
}
