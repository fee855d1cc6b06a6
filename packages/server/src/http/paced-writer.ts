import type { ServerResponse } from "node:http";
import { OctavoError } from "@octavo/protocol";

/** Writes a response no faster than its client reads, and gives up when the client stalls. */
export class PacedWriter {
  readonly #response: ServerResponse;
  readonly #signal: AbortSignal;
  readonly #stallTimeoutMs: number;
  #draining: Promise<void> | undefined;

  /** `stallTimeoutMs` 0 waits forever. */
  constructor(response: ServerResponse, signal: AbortSignal, stallTimeoutMs: number) {
    this.#response = response;
    this.#signal = signal;
    this.#stallTimeoutMs = stallTimeoutMs;
  }

  /** Resolves when the client has taken what was written; throws as `write`. Many may wait at once. */
  async ready(): Promise<void> {
    await this.#draining;
    this.#signal.throwIfAborted();
    if (this.#response.destroyed)
      throw new OctavoError("request_cancelled", "the client closed the connection");
  }

  /** Throws the signal's reason when the client left, `request_cancelled` when it stopped reading. */
  async write(text: string): Promise<void> {
    await this.ready();
    if (this.#response.write(text)) return;
    this.#draining ??= this.#drained().finally(() => {
      this.#draining = undefined;
    });
    await this.#draining;
  }

  #drained(): Promise<void> {
    return new Promise((resolve, reject) => {
      const settle = (finish: () => void): void => {
        clearTimeout(timer);
        this.#response.off("drain", onDrain);
        this.#signal.removeEventListener("abort", onAbort);
        finish();
      };
      const onDrain = (): void => settle(resolve);
      const onAbort = (): void => settle(() => reject(OctavoError.from(this.#signal.reason)));
      const onStall = (): void => {
        const message = `the client read nothing of its answer for ${this.#stallTimeoutMs} ms`;
        settle(() => reject(new OctavoError("request_cancelled", message)));
        this.#response.destroy();
      };
      const timer = this.#stallTimeoutMs > 0 ? setTimeout(onStall, this.#stallTimeoutMs) : undefined;
      this.#response.on("drain", onDrain);
      this.#signal.addEventListener("abort", onAbort);
      if (this.#signal.aborted) onAbort();
    });
  }
}
