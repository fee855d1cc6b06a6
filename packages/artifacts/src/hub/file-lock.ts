import { randomUUID } from "node:crypto";
import { link, readFile, rename, stat, unlink, utimes, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { makeFolder } from "@octavo/protocol/make-folder";
import { mayBeAlive, parseLockOwner, thisProcess } from "./lock-owner.js";

interface FileLockOptions {
  readonly signal?: AbortSignal | undefined;
  /** How long an owner may be silent before its lock counts as left behind; it signs every third of this. Default 30 s. */
  readonly staleMs?: number;
  /** Called once if the lock is held by another. */
  readonly onWait?: () => void;
}

/**
 * Runs `body` while holding the lock file, which other processes on this and other machines respect. Node has no flock;
 * exclusive creation works on every file system. A lock is taken over when its process is gone or has stopped signing.
 * Two owners after a takeover race are possible in theory: what the lock protects must survive that (here: hash checks
 * and atomic renames).
 */
export async function withFileLock<T>(
  path: string,
  options: FileLockOptions,
  body: () => Promise<T>,
): Promise<T> {
  const staleMs = options.staleMs ?? 30_000;
  makeFolder(dirname(path));
  const id = randomUUID();
  await acquire(path, id, staleMs, options);
  const heartbeat = setInterval(() => {
    const now = new Date();
    utimes(path, now, now).catch(() => undefined);
  }, staleMs / 3);
  heartbeat.unref();
  try {
    return await body();
  } finally {
    clearInterval(heartbeat);
    await release(path, id);
  }
}

interface Owner {
  readonly text: string;
  readonly mtimeMs: number;
}

async function acquire(path: string, id: string, staleMs: number, options: FileLockOptions): Promise<void> {
  const content = JSON.stringify({ ...thisProcess(), id });
  let seen: Owner | undefined;
  let seenSinceMs = performance.now();
  let waited = false;
  for (;;) {
    options.signal?.throwIfAborted();
    if (await create(path, content)) return;
    const owner = await readOwner(path);
    if (owner === undefined) continue;
    if (owner.text !== seen?.text || owner.mtimeMs !== seen.mtimeMs) {
      seen = owner;
      seenSinceMs = performance.now();
    }
    if (isGone(owner.text) || performance.now() - seenSinceMs > staleMs) {
      await takeAway(path, owner.text);
      continue;
    }
    if (!waited) options.onWait?.();
    waited = true;
    await sleep(
      Math.min(100, staleMs / 10),
      undefined,
      options.signal === undefined ? {} : { signal: options.signal },
    );
  }
}

async function create(path: string, content: string): Promise<boolean> {
  // Linked into place whole, so that nobody ever reads a half-written owner.
  const draft = `${path}.${randomUUID()}`;
  await writeFile(draft, content, { flag: "wx" });
  try {
    await link(draft, path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    return await createDirectly(path, content);
  } finally {
    await unlink(draft).catch(() => undefined);
  }
}

/** For file systems without hard links. */
async function createDirectly(path: string, content: string): Promise<boolean> {
  try {
    await writeFile(path, content, { flag: "wx" });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}

async function readOwner(path: string): Promise<Owner | undefined> {
  try {
    return { text: await readFile(path, "utf8"), mtimeMs: (await stat(path)).mtimeMs };
  } catch {
    // Released in the meantime.
    return undefined;
  }
}

/** Half a file tells nothing of its owner; its age will. */
function isGone(text: string): boolean {
  const owner = parseLockOwner(text);
  return owner !== undefined && !mayBeAlive(owner);
}

/** Moves a dead lock aside; if another process renewed it in between, it is put back. */
async function takeAway(path: string, expected: string): Promise<void> {
  const aside = `${path}.${randomUUID()}`;
  try {
    await rename(path, aside);
    if ((await readFile(aside, "utf8")) !== expected) await link(aside, path);
  } catch {
    // Another waiter was faster; the next round sees what it left.
  } finally {
    await unlink(aside).catch(() => undefined);
  }
}

async function release(path: string, id: string): Promise<void> {
  const owner = await readOwner(path);
  if (owner?.text.includes(id)) await unlink(path).catch(() => undefined);
}
