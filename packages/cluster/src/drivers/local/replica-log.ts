import { createWriteStream } from "node:fs";
import type { Writable } from "node:stream";

/** Bytes that may wait for a slow disk; what comes then is dropped and counted. */
const maxBehind = 1024 * 1024;

/**
 * What replicas print, to standard error, a file, or nowhere. A full disk or a file that cannot be written costs lines, never
 * serving: they are counted, and the file is tried again.
 */
export class ReplicaLog {
  readonly #destination: string;
  #stream: Writable | undefined;
  #retryAtMs = 0;
  #dropped = 0;

  constructor(destination: string) {
    this.#destination = destination;
  }

  get droppedLines(): number {
    return this.#dropped;
  }

  add(replica: string, line: string): void {
    const stream = this.#open();
    if (stream === undefined) return;
    if (stream.writableLength > maxBehind) this.#dropped += 1;
    else stream.write(`[${replica}] ${line}\n`);
  }

  async close(): Promise<void> {
    const stream = this.#stream;
    if (stream === undefined || stream === process.stderr || stream.destroyed) return;
    await new Promise<void>((resolve) => {
      stream.once("close", () => resolve());
      stream.end(() => stream.destroy());
    });
  }

  #open(): Writable | undefined {
    if (this.#destination === "off") return undefined;
    if (this.#destination === "stderr") return process.stderr;
    if (this.#stream !== undefined) return this.#stream;
    if (performance.now() < this.#retryAtMs) {
      this.#dropped += 1;
      return undefined;
    }
    const stream = createWriteStream(this.#destination, { flags: "a", mode: 0o640 });
    stream.on("error", () => {
      this.#dropped += 1;
      if (this.#stream === stream) this.#stream = undefined;
      this.#retryAtMs = performance.now() + 1000;
      stream.destroy();
    });
    this.#stream = stream;
    return stream;
  }
}
