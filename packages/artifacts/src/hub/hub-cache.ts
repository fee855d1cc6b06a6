import { randomUUID } from "node:crypto";
import {
  copyFile,
  readdir,
  readFile,
  readlink,
  rename,
  stat,
  symlink,
  unlink,
  writeFile,
} from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { makeFolder } from "@octavo/protocol/make-folder";
import { OctavoError, systemProblem } from "@octavo/protocol/errors";
import { checkRepositoryPath } from "./model-reference.js";

const commitPattern = /^[0-9a-f]{40}$/;

/**
 * One repository's place in the cache that Python's huggingface_hub keeps:
 *
 *     models--org--name/blobs/<etag>                the bytes, once
 *     models--org--name/refs/<revision>             the commit a branch or tag was last seen at
 *     models--org--name/snapshots/<commit>/<file>   relative links into blobs
 */
export class HubCache {
  readonly root: string;
  readonly #locks: string;

  constructor(cacheDir: string, repository: string) {
    const folder = `models--${repository.replaceAll("/", "--")}`;
    this.root = join(cacheDir, folder);
    this.#locks = join(cacheDir, ".locks", folder);
  }

  blobPath(etag: string): string {
    return join(this.root, "blobs", etag);
  }

  /** Beside Python's `<etag>.lock`, whose flock Node cannot take. */
  lockPath(etag: string): string {
    return join(this.#locks, `${etag}.octavo-lock`);
  }

  snapshotPath(commit: string): string {
    return join(this.root, "snapshots", commit);
  }

  /** Bytes of these blobs that are still to be fetched, parts of earlier attempts taken off. */
  async missingBytes(
    blobs: readonly { readonly etag: string; readonly size: number | undefined }[],
  ): Promise<number> {
    let bytes = 0;
    for (const { etag, size = 0 } of new Map(blobs.map((blob) => [blob.etag, blob])).values()) {
      const blob = this.blobPath(etag);
      const present = (await sizeOf(blob)) ?? (await sizeOf(`${blob}.incomplete`)) ?? 0;
      bytes += Math.max(0, size - present);
    }
    return bytes;
  }

  /** The commit a revision stands for as far as the cache knows. */
  async readRef(revision: string): Promise<string | undefined> {
    if (commitPattern.test(revision)) return revision;
    try {
      const commit = (await readFile(join(this.root, "refs", ...revision.split("/")), "utf8")).trim();
      return commitPattern.test(commit) ? commit : undefined;
    } catch {
      return undefined;
    }
  }

  async writeRef(revision: string, commit: string): Promise<void> {
    if (revision === commit) return;
    const path = join(this.root, "refs", ...revision.split("/"));
    if ((await this.readRef(revision)) === commit) return;
    makeFolder(dirname(path));
    const draft = `${path}.${randomUUID()}`;
    await writeFile(draft, commit);
    await rename(draft, path);
  }

  /** Files of a snapshot whose bytes are there; dangling links are left out. */
  async listSnapshot(commit: string): Promise<string[]> {
    const root = this.snapshotPath(commit);
    let entries: string[];
    try {
      entries = await readdir(root, { recursive: true });
    } catch {
      return [];
    }
    const files: string[] = [];
    for (const entry of entries) {
      const isFile = await stat(join(root, entry)).then(
        (stats) => stats.isFile(),
        () => false,
      );
      if (isFile) files.push(entry.replaceAll("\\", "/"));
    }
    return files;
  }

  /** Points the snapshot's `file` at a blob. Safe against others doing the same. */
  async linkSnapshot(commit: string, file: string, etag: string): Promise<void> {
    checkRepositoryPath(file);
    const path = join(this.snapshotPath(commit), ...file.split("/"));
    const blob = this.blobPath(etag);
    const target = relative(dirname(path), blob);
    if ((await readlink(path).catch(() => undefined)) === target) return;
    makeFolder(dirname(path));
    const draft = `${path}.${randomUUID()}`;
    try {
      await symlink(target, draft);
    } catch {
      // Windows without developer mode has no links for ordinary users.
      await copyFile(blob, draft);
    }
    await rename(draft, path).catch(async (error: unknown) => {
      await unlink(draft).catch(() => undefined);
      throw cacheFailure(path, error);
    });
  }
}

async function sizeOf(path: string): Promise<number | undefined> {
  return stat(path).then(
    (stats) => stats.size,
    () => undefined,
  );
}

/** A failed write to the cache as an error that says what to do. */
export function cacheFailure(path: string, error: unknown): OctavoError {
  if (error instanceof OctavoError) return error;
  const code = (error as NodeJS.ErrnoException).code;
  if (code === "ENOSPC" || code === "EDQUOT") {
    return new OctavoError(
      "disk_full",
      `${path}: the disk is full; free space, or set HF_HOME to another disk`,
      { cause: error },
    );
  }
  return new OctavoError(
    "invalid_option",
    `${path}: the model cache cannot be written: ${systemProblem(error)}; set HF_HOME to a folder that can`,
    {
      cause: error,
      param: "HF_HOME",
    },
  );
}
