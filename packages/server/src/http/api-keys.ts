import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { OctavoError } from "@octavo/protocol";
import type { CheckedKey } from "../tenants/ownership.js";
import type { TenantKey } from "../tenants/tenant-settings.js";

/**
 * Bearer keys and the identities of their holders. Digests are compared instead of keys, and always all of them, so that
 * timing reveals neither a key's length, nor how much of it was right, nor which one matched.
 */
export class ApiKeys {
  #digests: readonly Buffer[] = [];
  #identities: readonly CheckedKey[] = [];
  /** Digest over all keys. */
  #secret: Buffer = Buffer.alloc(0);
  /** A key keeps its number as long as the server runs: what belongs to a key of no tenant is found by it. */
  readonly #numbers = new Map<string, number>();

  constructor(keys: readonly string[], tenantKeys: readonly TenantKey[] = []) {
    this.replace(keys, tenantKeys);
  }

  /** From now on these keys are the valid ones. */
  replace(keys: readonly string[], tenantKeys: readonly TenantKey[] = []): void {
    const all: readonly TenantKey[] = [...keys.map((key) => ({ key })), ...tenantKeys];
    this.#digests = all.map((entry) =>
      "key" in entry ? digest(entry.key) : Buffer.from(entry.sha256, "hex"),
    );
    this.#secret = createHash("sha256").update(Buffer.concat(this.#digests)).digest();
    this.#identities = all.map(({ tenant, lane, tenantFrom }, at) => ({
      index: this.#numberOf(this.#digests[at]?.toString("hex") ?? ""),
      tenant,
      lane,
      tenantFrom,
    }));
  }

  get required(): boolean {
    return this.#digests.length > 0;
  }

  /** What is known of the key in these headers; undefined without a valid one. */
  find(headers: IncomingHttpHeaders): CheckedKey | undefined {
    const offered = /^bearer +(.+)$/i.exec(credentials(headers) ?? "")?.[1]?.trim();
    if (!this.required || offered === undefined) return undefined;
    const given = digest(offered);
    let valid = -1;
    for (let index = this.#digests.length - 1; index >= 0; index -= 1)
      valid += Number(timingSafeEqual(this.#digests[index]!, given)) * (index - valid);
    return this.#identities[valid];
  }

  #numberOf(name: string): number {
    const number = this.#numbers.get(name) ?? this.#numbers.size;
    this.#numbers.set(name, number);
    return number;
  }

  /** Stands for a name: tells nothing to who lacks any of the keys, and stays the same as long as the keys do. */
  pseudonym(name: string): string {
    return `hidden-${createHmac("sha256", this.#secret).update(name, "utf8").digest("hex").slice(0, 12)}`;
  }

  /** Throws `unauthorized` if keys are configured and the headers carried none of them. */
  check(found: CheckedKey | undefined, headers: IncomingHttpHeaders): void {
    if (found !== undefined || !this.required) return;
    const reason = credentials(headers) === undefined ? "no API key was sent" : "the API key is not valid";
    throw new OctavoError("unauthorized", `${reason}; send it as "Authorization: Bearer KEY"`);
  }
}

/** Anthropic's clients send the key in `x-api-key`. */
function credentials({ authorization, "x-api-key": key }: IncomingHttpHeaders): string | undefined {
  return authorization ?? (typeof key === "string" ? `Bearer ${key}` : undefined);
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text, "utf8").digest();
}
