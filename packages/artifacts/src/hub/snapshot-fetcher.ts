import { statfs } from "node:fs/promises";
import { makeFolder } from "@octavo/protocol/make-folder";
import { OctavoError } from "@octavo/protocol/errors";
import { downloadBlob } from "./blob-download.js";
import { ProgressCounter, type DownloadProgress } from "./download-progress.js";
import { cacheFailure, type HubCache } from "./hub-cache.js";
import type { FileMetadata, HubClient } from "./hub-client.js";
import { mapConcurrent } from "./map-concurrent.js";
import { formatDecimalBytes } from "./progress-bar.js";

interface FetchTarget {
  readonly name: string;
  readonly repository: string;
  readonly commit: string;
  readonly client: HubClient;
  readonly cache: HubCache;
  readonly signal: AbortSignal;
  /** Aborts downloads in progress once a file has failed; partial files are resumed by the next run. */
  readonly stop: () => void;
  readonly maxConcurrency: number;
  readonly onProgress: ((progress: DownloadProgress) => void) | undefined;
}

/** Fetches files of one commit into the cache, several at a time. */
export class SnapshotFetcher {
  readonly #target: FetchTarget;

  constructor(target: FetchTarget) {
    this.#target = target;
  }

  async fetch(files: readonly string[], withProgress: boolean): Promise<void> {
    const { name, client, cache, repository, commit, signal, stop, maxConcurrency, onProgress } =
      this.#target;
    const describe = async (file: string): Promise<{ file: string; metadata: FileMetadata }> => {
      return { file, metadata: await client.fileMetadata(repository, commit, file) };
    };
    const entries = await mapConcurrent(files, maxConcurrency, describe, stop);
    await this.#checkDisk(entries.map((entry) => entry.metadata));
    const totalBytes = entries.reduce((sum, { metadata }) => sum + (metadata.size ?? 0), 0);
    const counter = new ProgressCounter(
      name,
      files.length,
      totalBytes,
      withProgress ? onProgress : undefined,
    );
    const bring = async ({ file, metadata }: { file: string; metadata: FileMetadata }): Promise<void> => {
      const onBytes = (received: number): void => counter.update(file, received);
      await downloadBlob({ client, cache, repository, commit, file, metadata, signal, onBytes });
      await cache.linkSnapshot(commit, file, metadata.etag).catch((error: unknown) => {
        throw cacheFailure(cache.snapshotPath(commit), error);
      });
      counter.finishFile();
    };
    await mapConcurrent(entries, maxConcurrency, bring, stop);
  }

  /** Checks free disk space before downloading. Bytes already in the cache, partial files included, are not counted. */
  async #checkDisk(blobs: readonly FileMetadata[]): Promise<void> {
    const needed = await this.#target.cache.missingBytes(blobs);
    if (needed === 0) return;
    const folder = this.#target.cache.root;
    let freeBytes: number;
    try {
      makeFolder(folder);
      const { bavail, bsize } = await statfs(folder);
      freeBytes = bavail * bsize;
    } catch (error) {
      throw cacheFailure(folder, error);
    }
    if (needed > freeBytes) {
      throw new OctavoError(
        "disk_full",
        `${this.#target.name} needs ${formatDecimalBytes(needed)} more in ${folder}, where ${formatDecimalBytes(freeBytes)} are free; free space, or set HF_HOME to another disk`,
      );
    }
  }
}
