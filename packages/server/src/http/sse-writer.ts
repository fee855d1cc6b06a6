import type { ServerResponse } from "node:http";
import { encodeSseJson, type OctavoError, sseDone, toErrorBody } from "@octavo/protocol";
import { PacedWriter } from "./paced-writer.js";
import { publicError } from "./public-error.js";
import type { RequestContext } from "./request-context.js";

/**
 * Server-sent events on one response. Events are buffered and written once per `flush`, which waits for slow clients;
 * meanwhile the engine merges new output into fewer, larger deltas.
 */
export class SseWriter {
  readonly #response: ServerResponse;
  readonly #writer: PacedWriter;
  #pending = "";

  constructor(response: ServerResponse, signal: AbortSignal, stallTimeoutMs: number) {
    this.#response = response;
    this.#writer = new PacedWriter(response, signal, stallTimeoutMs);
    response.writeHead(200, {
      "content-type": "text/event-stream; charset=utf-8",
      "cache-control": "no-cache",
      "x-accel-buffering": "no",
    });
    response.flushHeaders();
  }

  send(value: unknown, event?: string): void {
    this.#pending += encodeSseJson(value, event);
  }

  /** Throws the signal's reason when the client left, `request_cancelled` when it stopped reading. */
  async flush(): Promise<void> {
    if (this.#pending === "") return;
    await this.#writer.ready();
    const text = this.#pending;
    this.#pending = "";
    // another flush that waited at the same time may have written everything
    if (text !== "") await this.#writer.write(text);
  }

  /** Ends a complete stream with `[DONE]`. */
  end(): void {
    this.#pending += sseDone;
    this.close();
  }

  /** Ends a stream whose last event marks its end. */
  close(): void {
    if (!this.#response.destroyed) this.#response.end(this.#pending);
    this.#pending = "";
  }

  /** Ends a failed stream with an error event and no `[DONE]`, so that it cannot be mistaken for a complete one. */
  fail(error: OctavoError): void {
    if (!this.#response.destroyed) this.#response.end(this.#pending + encodeSseJson(toErrorBody(error)));
    this.#pending = "";
  }
}

/**
 * Answers with a stream of events. When `write` fails, whatever still runs for the request is aborted, `writeFailure` tells the
 * client, and the error is thrown on.
 */
export async function streamEvents(
  context: RequestContext,
  stallTimeoutMs: number,
  write: (writer: SseWriter) => Promise<void>,
  writeFailure: (writer: SseWriter, error: OctavoError) => void = (writer, error) => writer.fail(error),
): Promise<void> {
  const writer = new SseWriter(context.response, context.signal, stallTimeoutMs);
  try {
    await write(writer);
  } catch (thrown) {
    const error = publicError(thrown, context);
    context.abort(error);
    writeFailure(writer, error);
    throw error;
  }
}
