/** How far the download of one model is. Reported when something changed, at most about ten times a second. */
export interface DownloadProgress {
  readonly name: string;
  readonly numFiles: number;
  readonly finishedFiles: number;
  /** Bytes on disk, those of earlier runs included. */
  readonly receivedBytes: number;
  /** Bytes that were on disk before this run. */
  readonly presentBytes: number;
  readonly totalBytes: number;
  readonly elapsedMs: number;
  readonly done: boolean;
}

const reportIntervalMs = 100;

/** Adds up the files of one download and passes the sum on. */
export class ProgressCounter {
  readonly #name: string;
  readonly #numFiles: number;
  readonly #totalBytes: number;
  readonly #onProgress: ((progress: DownloadProgress) => void) | undefined;
  readonly #received = new Map<string, number>();
  readonly #startMs = performance.now();
  #presentBytes = 0;
  #finishedFiles = 0;
  #lastReportMs = -Infinity;

  constructor(
    name: string,
    numFiles: number,
    totalBytes: number,
    onProgress: ((progress: DownloadProgress) => void) | undefined,
  ) {
    this.#name = name;
    this.#numFiles = numFiles;
    this.#totalBytes = totalBytes;
    this.#onProgress = onProgress;
  }

  /** The first figure of a file is what an earlier run left. */
  update(file: string, receivedBytes: number): void {
    if (!this.#received.has(file)) this.#presentBytes += receivedBytes;
    this.#received.set(file, receivedBytes);
    if (performance.now() - this.#lastReportMs >= reportIntervalMs) this.#report(false);
  }

  finishFile(): void {
    this.#finishedFiles++;
    this.#report(this.#finishedFiles === this.#numFiles);
  }

  #report(done: boolean): void {
    this.#lastReportMs = performance.now();
    let receivedBytes = 0;
    for (const bytes of this.#received.values()) receivedBytes += bytes;
    this.#onProgress?.({
      name: this.#name,
      numFiles: this.#numFiles,
      finishedFiles: this.#finishedFiles,
      receivedBytes,
      presentBytes: this.#presentBytes,
      totalBytes: this.#totalBytes,
      elapsedMs: performance.now() - this.#startMs,
      done,
    });
  }
}
