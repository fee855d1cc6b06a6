import { createHash } from "node:crypto";
import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { isRecord, parseJson } from "@octavo/protocol";

/** What entries are made by: another one of findings or clusters makes all of them anew. */
const cacheVersion = 1;

/** A file that was written this short a time ago may be written again without a trace in its times. */
const settledMs = 50;

const headerEnd = "\n";

/** Files that are a cache's own, among whatever else its folder may hold. */
const ownFile = /^[0-9a-f]{64}\.json(?:\.\d+\.partial)?$/;

/**
 * What `octavo errors list` need not find again: results by what they were made of, a file each in one folder. An entry that is of
 * something else now is made again; so is one that cannot be read or is not what was written, and `numBroken` counts it. Entries
 * that a list did not ask for are dropped when it ends. Where the folder cannot be written, everything is made each time.
 */
export class FeedCache {
  readonly #folder: string;
  readonly #asked = new Set<string>();
  #numBroken = 0;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Entries that were there and could not be used. */
  get numBroken(): number {
    return this.#numBroken;
  }

  /** A value of JSON that is made of what `content` describes whole. */
  async recall<Value>(content: string, make: () => Promise<Value>): Promise<Value> {
    return this.#recall(digestOf(content), "", make);
  }

  /** A value of JSON that is made of these files as they are now. */
  async recallOfFiles<Value>(
    { files, reading }: { readonly files: readonly string[]; readonly reading: string },
    make: () => Promise<Value>,
  ): Promise<Value> {
    const paths = files.map((file) => resolve(file));
    const name = digestOf(JSON.stringify([reading, paths]));
    return this.#recall(name, await identityOf(paths), make, async () => identityOf(paths));
  }

  /** Drops what was not asked for since this was made. */
  async prune(): Promise<void> {
    const names = await readdir(this.#folder).catch(() => []);
    for (const name of names)
      if (ownFile.test(name) && !this.#asked.has(name))
        await rm(join(this.#folder, name), { force: true }).catch(() => undefined);
  }

  async #recall<Value>(
    name: string,
    identity: string | undefined,
    make: () => Promise<Value>,
    identityNow?: () => Promise<string | undefined>,
  ): Promise<Value> {
    const file = `${name}.json`;
    const path = join(this.#folder, file);
    this.#asked.add(file);
    const kept = await this.#read(path, identity);
    // its name and its digest say that this is what `make` made
    if (kept !== undefined) return kept.value as Value;
    const value = await make();
    // files that changed while they were read are of no identity
    if (identity !== undefined && (identityNow === undefined || identity === (await identityNow())))
      await this.#write(path, identity, value);
    return value;
  }

  async #read(path: string, identity: string | undefined): Promise<{ readonly value: unknown } | undefined> {
    const text = await readFile(path, "utf8").catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "ENOENT") this.#numBroken += 1;
      return undefined;
    });
    if (text === undefined) return undefined;
    const end = text.indexOf(headerEnd);
    const header = parseJson(text.slice(0, Math.max(0, end)))?.value;
    if (
      !isRecord(header) ||
      typeof header["version"] !== "number" ||
      typeof header["identity"] !== "string"
    ) {
      this.#numBroken += 1;
      return undefined;
    }
    if (header["version"] !== cacheVersion || header["identity"] !== identity) return undefined;
    const body = text.slice(end + 1);
    // what was written, to the byte: its shape need not be looked at
    if (header["digest"] === digestOf(body)) return { value: JSON.parse(body) };
    this.#numBroken += 1;
    return undefined;
  }

  async #write(path: string, identity: string, value: unknown): Promise<void> {
    const body = JSON.stringify(value);
    const header = JSON.stringify({ version: cacheVersion, identity, digest: digestOf(body) });
    const partial = `${path}.${process.pid}.partial`;
    try {
      await mkdir(this.#folder, { recursive: true });
      await writeFile(partial, `${header}${headerEnd}${body}`);
      await rename(partial, path);
    } catch {
      await rm(partial, { force: true }).catch(() => undefined);
    }
  }
}

/** Which files these are, and in which state. Undefined where one was written just now. */
async function identityOf(paths: readonly string[]): Promise<string | undefined> {
  const found = await Promise.all(paths.map((path) => stat(path, { bigint: true })));
  const nowMs = Date.now();
  if (
    found.some(
      ({ mtimeMs, ctimeMs }) => Math.abs(nowMs - Number(mtimeMs > ctimeMs ? mtimeMs : ctimeMs)) < settledMs,
    )
  )
    return undefined;
  return digestOf(
    JSON.stringify(
      found.map(({ dev, ino, size, mtimeNs, ctimeNs }) => [dev, ino, size, mtimeNs, ctimeNs].map(String)),
    ),
  );
}

function digestOf(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
