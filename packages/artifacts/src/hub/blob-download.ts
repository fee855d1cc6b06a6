import { createHash, type Hash } from "node:crypto";
import { createReadStream } from "node:fs";
import { open, rename, stat, unlink, type FileHandle } from "node:fs/promises";
import { dirname } from "node:path";
import { makeFolder } from "@octavo/protocol/make-folder";
import { OctavoError } from "@octavo/protocol/errors";
import { withFileLock } from "./file-lock.js";
import { cacheFailure, type HubCache } from "./hub-cache.js";
import type { FileMetadata, HubClient } from "./hub-client.js";

interface BlobDownload {
  readonly client: HubClient;
  readonly cache: HubCache;
  readonly repository: string;
  readonly commit: string;
  readonly file: string;
  readonly metadata: FileMetadata;
  readonly signal?: AbortSignal | undefined;
  /** Bytes of the file that are on disk now; falls back to less when a damaged part is thrown away. */
  readonly onBytes?: (received: number) => void;
}

const downloadRetries = 5;

/**
 * Brings one file's bytes into `blobs/<etag>`: resumes what an earlier attempt left in `<etag>.incomplete`, checks size and
 * hash before the final name exists, and leaves the part on disk when interrupted.
 * @throws OctavoError `hub_unreachable`, `hub_denied`, `artifact_not_found`, `integrity_failed`, `disk_full`, `request_cancelled`
 */
export async function downloadBlob(download: BlobDownload): Promise<void> {
  const { cache, metadata } = download;
  const blob = cache.blobPath(metadata.etag);
  if (await isComplete(blob, metadata.size)) return report(download, blob);
  try {
    makeFolder(dirname(blob));
    await withFileLock(cache.lockPath(metadata.etag), { signal: download.signal }, async () => {
      if (await isComplete(blob, metadata.size)) return report(download, blob);
      const part = `${blob}.incomplete`;
      await fetchVerified(download, part);
      await rename(part, blob);
    });
  } catch (error) {
    if (download.signal?.aborted)
      throw new OctavoError("request_cancelled", "the download was cancelled", { cause: error });
    throw cacheFailure(blob, error);
  }
}

async function isComplete(path: string, size: number | undefined): Promise<boolean> {
  const length = await lengthOf(path);
  return length !== undefined && (size === undefined || length === size);
}

async function report(download: BlobDownload, blob: string): Promise<void> {
  download.onBytes?.((await lengthOf(blob)) ?? 0);
}

/** A part from an earlier run may be damaged, so a mismatch is worth one fresh start; a second one is the hub's fault. */
async function fetchVerified(download: BlobDownload, part: string): Promise<void> {
  for (let fresh = false; ; fresh = true) {
    let received = (await lengthOf(part)) ?? 0;
    await download.client.withRetries(
      downloadRetries,
      `${download.repository}/${download.file}`,
      async () => {
        await fetchOnce(download, part, (bytes) => {
          received = bytes;
          download.onBytes?.(bytes);
        });
      },
      () => received,
    );
    const problem = await findMismatch(part, download.metadata);
    if (problem === undefined) return;
    await unlink(part);
    if (fresh) {
      throw new OctavoError(
        "integrity_failed",
        `${download.repository}/${download.file}: ${problem}; what was downloaded has been thrown away, try again`,
      );
    }
  }
}

async function fetchOnce(
  download: BlobDownload,
  part: string,
  onBytes: (received: number) => void,
): Promise<void> {
  const { client, repository, commit, file, metadata } = download;
  const { size } = metadata;
  let offset = (await lengthOf(part)) ?? 0;
  if (size !== undefined && offset === size) return onBytes(offset);
  if (size !== undefined && offset > size) offset = 0;
  const { status, headers, body } = await client.openFile(repository, commit, file, offset);
  if (status === 416 || (status === 206 && !continues(headers["content-range"], offset, size))) {
    await body.dump();
    await unlink(part).catch(() => undefined);
    throw new OctavoError(
      "hub_unreachable",
      `${repository}/${file}: the server cannot resume at byte ${offset}`,
    );
  }
  if (status !== 206) offset = 0;
  const handle = await openPart(part, offset > 0 ? "r+" : "w");
  let received = offset;
  try {
    onBytes(received);
    for await (const chunk of body as AsyncIterable<Buffer>) {
      if (size !== undefined && received + chunk.byteLength > size) {
        throw new OctavoError(
          "integrity_failed",
          `${repository}/${file}: the server sends more than the ${size} bytes it announced`,
        );
      }
      await writeAll(handle, chunk, received, part);
      received += chunk.byteLength;
      onBytes(received);
    }
    await handle.sync().catch((error: unknown) => {
      throw cacheFailure(part, error);
    });
  } finally {
    await handle.close();
  }
  if (size !== undefined && received < size) {
    throw new OctavoError(
      "hub_unreachable",
      `${repository}/${file}: the connection ended after ${received} of ${size} bytes`,
    );
  }
}

/** A disk's failure must not pass for the network's, which would be tried again. */
async function openPart(part: string, flags: "r+" | "w"): Promise<FileHandle> {
  try {
    return await open(part, flags);
  } catch (error) {
    throw cacheFailure(part, error);
  }
}

async function writeAll(handle: FileHandle, chunk: Buffer, position: number, path: string): Promise<void> {
  try {
    for (let done = 0; done < chunk.byteLength;) {
      done += (await handle.write(chunk, done, chunk.byteLength - done, position + done)).bytesWritten;
    }
  } catch (error) {
    throw cacheFailure(path, error);
  }
}

function continues(
  contentRange: string | string[] | undefined,
  offset: number,
  size: number | undefined,
): boolean {
  const match = /^bytes (\d+)-\d+\/(\d+|\*)$/.exec(String(contentRange ?? ""));
  if (match === null || Number(match[1]) !== offset) return false;
  return size === undefined || match[2] === "*" || Number(match[2]) === size;
}

/**
 * Hashes the finished part from disk (its pages are still in memory), whichever attempts it came from. Names the hub gives
 * blobs: sha256 of the content for LFS and Xet files, git's blob sha1 for the others.
 */
async function findMismatch(part: string, metadata: FileMetadata): Promise<string | undefined> {
  const length = (await lengthOf(part)) ?? 0;
  if (metadata.size !== undefined && length !== metadata.size) {
    return `has ${length} bytes instead of ${metadata.size}`;
  }
  const hash = hashFor(metadata.etag, length);
  if (hash === undefined) return undefined;
  for await (const chunk of createReadStream(part, { highWaterMark: 1024 * 1024 }))
    hash.update(chunk as Buffer);
  const digest = hash.digest("hex");
  return digest === metadata.etag ? undefined : `has the hash ${digest} instead of ${metadata.etag}`;
}

function hashFor(etag: string, length: number): Hash | undefined {
  if (/^[0-9a-f]{64}$/.test(etag)) return createHash("sha256");
  if (/^[0-9a-f]{40}$/.test(etag)) return createHash("sha1").update(`blob ${length}\0`);
  return undefined;
}

async function lengthOf(path: string): Promise<number | undefined> {
  try {
    return (await stat(path)).size;
  } catch {
    return undefined;
  }
}
