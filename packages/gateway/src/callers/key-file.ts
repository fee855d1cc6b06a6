import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { OctavoError } from "@octavo/protocol";
import { z } from "zod";

const name = z.string().min(1).max(128);

/** A key as it is kept: its digest, never the key. */
export const callerKeySchema = z.strictObject({
  id: name,
  /** Digest of the key; 64 hexadecimal digits. */
  sha256: z.string().regex(/^[0-9a-f]{64}$/, "expected 64 hexadecimal digits"),
  tenant: name.optional(),
  /** Models that it may name; all unless given. */
  models: z.array(name).optional(),
  tags: z.array(name).default([]),
  /** It is valid before this moment. */
  expires: z.iso.datetime({ offset: true }).optional(),
  disabled: z.boolean().default(false),
});

export type CallerKey = z.output<typeof callerKeySchema>;

const keyFileSchema = z.strictObject({ keys: z.array(callerKeySchema).max(100_000) });

/** 256 random bits: a digest without salt is enough for what nobody can guess. */
export function newCallerKey(): { readonly key: string; readonly sha256: string } {
  const key = `ok-${randomBytes(32).toString("base64url")}`;
  return { key, sha256: keyDigest(key).toString("hex") };
}

function keyDigest(key: string): Buffer {
  return createHash("sha256").update(key).digest();
}

interface KnownKey {
  readonly digest: Buffer;
  readonly entry: CallerKey;
}

/** Keys by their digests. What is compared depends on the digest of what was sent alone, so its time says nothing of keys. */
export class KeyRing {
  readonly #byDigest: ReadonlyMap<string, KnownKey>;
  readonly entries: readonly CallerKey[];

  /** Throws `invalid_option` for ids or keys that are there twice. */
  constructor(entries: readonly CallerKey[]) {
    this.entries = entries;
    const ids = new Set<string>();
    const byDigest = new Map<string, KnownKey>();
    for (const entry of entries) {
      if (ids.has(entry.id) || byDigest.has(entry.sha256)) {
        throw new OctavoError(
          "invalid_option",
          `keys: ${entry.id} is there twice, or its key is another's.`,
          {
            param: "keys",
          },
        );
      }
      ids.add(entry.id);
      byDigest.set(entry.sha256, { digest: Buffer.from(entry.sha256, "hex"), entry });
    }
    this.#byDigest = byDigest;
  }

  /** The entry of a key that is valid at a moment (ms since 1970). */
  find(key: string, nowMs: number): CallerKey | undefined {
    const digest = keyDigest(key);
    const known = this.#byDigest.get(digest.toString("hex"));
    if (known === undefined || !timingSafeEqual(known.digest, digest)) return undefined;
    const { disabled, expires } = known.entry;
    return disabled || (expires !== undefined && nowMs >= Date.parse(expires)) ? undefined : known.entry;
  }
}

/** Keys in a file of JSON, read again when it changes; other instances and people write it too. */
export class KeyFile {
  readonly #path: string;
  #ring: KeyRing;
  #stamp: string;

  /** Throws `invalid_option` where the file is not there or not as it should be, with the place. */
  constructor(path: string) {
    this.#path = path;
    this.#stamp = stampOf(path);
    this.#ring = readRing(path);
  }

  get ring(): KeyRing {
    return this.#ring;
  }

  /** Returns whether the keys are others now. Throws as the constructor does, and then keeps those that were there. */
  reload(): boolean {
    const stamp = stampOf(this.#path);
    if (stamp === this.#stamp) return false;
    this.#stamp = stamp;
    this.#ring = readRing(this.#path);
    return true;
  }

  /** Throws `invalid_option` for entries that cannot stand together. */
  write(entries: readonly CallerKey[]): void {
    const ring = new KeyRing(entries);
    const next = `${this.#path}.next`;
    writeFileSync(next, `${JSON.stringify({ keys: entries }, null, 2)}\n`, { mode: 0o600 });
    renameSync(next, this.#path);
    this.#stamp = stampOf(this.#path);
    this.#ring = ring;
  }
}

function stampOf(path: string): string {
  try {
    const { mtimeMs, size, ino } = statSync(path);
    return `${mtimeMs}:${size}:${ino}`;
  } catch (cause) {
    throw invalid(path, (cause as Error).message, cause);
  }
}

function readRing(path: string): KeyRing {
  let json: unknown;
  try {
    json = JSON.parse(readFileSync(path, "utf8"));
  } catch (cause) {
    throw invalid(path, (cause as Error).message, cause);
  }
  const { data, error } = keyFileSchema.safeParse(json);
  if (data === undefined) {
    const [issue] = error.issues;
    throw invalid(path, `${issue?.path.join(".") ?? ""}: ${issue?.message ?? ""}`, error);
  }
  return new KeyRing(data.keys);
}

function invalid(path: string, what: string, cause: unknown): OctavoError {
  return new OctavoError("invalid_option", `keys_file ${path}: ${what}`, { param: "keys_file", cause });
}
