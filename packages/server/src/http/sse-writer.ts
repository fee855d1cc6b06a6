import type { ServerResponse } from "node:http";
import { encodeSseJson, OctavoError, sseDone, toErrorBody } from "@octavo/protocol";

/**
 * Server-sent events on one response. Events are gathered and written with one call per `flush`, which waits while
 * the client does not keep up; the engine meanwhile joins new output into fewer, larger deltas.
 */
export class SseWriter {
  readonly #response: ServerResponse;
  readonly #signal: AbortSignal;
  readonly #stallTimeoutMs: number;
  #pending = "";

  constructor(response: ServerResponse, signal: AbortSignal, stallTimeoutMs: number) {
    this.#response = response;
    this.#signal = signal;
    this.#stallTimeoutMs = stallTimeoutMs;
    response.writeHead(200, {
      "content-type": "text/event-stream; charset=utf-8",
      "cache-control": "no-cache",
      "x-accel-buffering": "no",
    });
    response.flushHeaders();
  }

  send(value: unknown): void {
    this.#pending += encodeSseJson(value);
  }

  /** Throws the signal's reason when the client left, `request_cancelled` when it stopped reading. */
  async flush(): Promise<void> {
    if (this.#pending === "") return;
    this.#signal.throwIfAborted();
    const text = this.#pending;
    this.#pending = "";
    if (this.#response.destroyed)
      throw new OctavoError("request_cancelled", "the client closed the connection");
    if (!this.#response.write(text)) await this.#drained();
  }

  /** Ends a complete stream with `[DONE]`. */
  end(): void {
    if (this.#response.destroyed) return;
    this.#response.end(this.#pending + sseDone);
    this.#pending = "";
  }

  /** Ends a broken stream with a typed error event and no `[DONE]`, so that it cannot pass for a complete one. */
  fail(error: OctavoError): void {
    if (!this.#response.destroyed) this.#response.end(this.#pending + encodeSseJson(toErrorBody(error)));
    this.#pending = "";
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
        const message = `the client read nothing of its stream for ${this.#stallTimeoutMs} ms`;
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
