import type { IncomingHttpHeaders } from "node:http";
import { performance } from "node:perf_hooks";
import { OctavoError } from "@octavo/protocol";
import type { Dispatcher } from "undici";
import type { LiveTarget } from "../targets/live-target.js";

export interface UpstreamTimeouts {
  /** To the first byte of the answer's body. */
  readonly firstByteMs: number;
  /** Between bytes after it, unless the reader itself holds them up. */
  readonly idleMs: number;
}

export interface UpstreamListener {
  onStart(status: number, headers: IncomingHttpHeaders): void;
  onData(chunk: Buffer): void;
  onEnd(): void;
  /** At most once, and nothing after it. */
  onFailure(error: OctavoError): void;
}

/**
 * One POST to a target over its pool: bytes in, bytes out, with times to the first byte and between bytes. It is undici's handler
 * itself, and has one timer, which looks when it fires whether bytes came meanwhile: a call costs neither closures nor a timer for
 * every chunk.
 */
export class UpstreamCall implements Dispatcher.DispatchHandler {
  readonly #listener: UpstreamListener;
  readonly #timeouts: UpstreamTimeouts;
  #controller: Dispatcher.DispatchController | undefined;
  #timer: NodeJS.Timeout | undefined;
  /** When it fires, and when the last bytes came, on `performance.now()`'s clock. */
  #timerMs = 0;
  #bytesMs: number | undefined;
  #isOver = false;

  constructor(
    target: LiveTarget,
    request: {
      readonly path: string;
      /** Names and values in turn. */
      readonly headers: string[];
      readonly body: Buffer | string;
    },
    timeouts: UpstreamTimeouts,
    listener: UpstreamListener,
  ) {
    this.#listener = listener;
    this.#timeouts = timeouts;
    this.#watch(timeouts.firstByteMs);
    const { path, headers, body } = request;
    target.pool.dispatch({ path, method: "POST", headers, body }, this);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#isOver) controller.abort(cancelled);
  }

  onResponseStart(_: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    if (!this.#isOver) this.#listener.onStart(status, headers);
  }

  onResponseData(_: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#isOver) return;
    this.#waitForMore();
    this.#listener.onData(chunk);
  }

  onResponseEnd(): void {
    if (this.#finish()) this.#listener.onEnd();
  }

  onResponseError(_: Dispatcher.DispatchController, cause: Error): void {
    this.#fail(connectionFailure(cause));
  }

  /** Ends the call: the target sees its connection close at once. Nothing is heard of it afterwards. */
  cancel(): void {
    if (this.#finish()) this.#controller?.abort(cancelled);
  }

  /** Lets the target wait: its reader is not ready for more. */
  pause(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#controller?.pause();
  }

  resume(): void {
    if (this.#isOver) return;
    this.#bytesMs = performance.now();
    this.#watch(this.#timeouts.idleMs);
    this.#controller?.resume();
  }

  #waitForMore(): void {
    const isFirst = this.#bytesMs === undefined;
    this.#bytesMs = performance.now();
    const { idleMs } = this.#timeouts;
    if (isFirst && this.#bytesMs + idleMs < this.#timerMs) this.#watch(idleMs);
  }

  #watch(waitMs: number): void {
    clearTimeout(this.#timer);
    this.#timerMs = performance.now() + waitMs;
    this.#timer = setTimeout(timeOut, waitMs, this);
  }

  /** For the timer alone. */
  timeOut(): void {
    const { firstByteMs, idleMs } = this.#timeouts;
    if (this.#bytesMs !== undefined) {
      const left = this.#bytesMs + idleMs - performance.now();
      if (left > 0) {
        this.#watch(Math.ceil(left));
        return;
      }
    }
    const message =
      this.#bytesMs === undefined
        ? `the target did not begin to answer within ${firstByteMs} ms`
        : `the target sent nothing for ${idleMs} ms`;
    this.#fail(new OctavoError("target_timeout", message));
  }

  #fail(error: OctavoError): void {
    if (!this.#finish()) return;
    this.#controller?.abort(cancelled);
    this.#listener.onFailure(error);
  }

  #finish(): boolean {
    if (this.#isOver) return false;
    this.#isOver = true;
    clearTimeout(this.#timer);
    return true;
  }
}

function timeOut(call: UpstreamCall): void {
  call.timeOut();
}

/** What undici is given as the reason of an abort; nobody sees it. */
const cancelled = new OctavoError("request_cancelled", "the gateway ended the call");

/** The address is the operator's matter: the message names the kind of failure alone. */
function connectionFailure(cause: Error & { readonly code?: string }): OctavoError {
  const code = cause.code ?? cause.name;
  if (code === "UND_ERR_CONNECT_TIMEOUT")
    return new OctavoError("target_timeout", "the target did not accept a connection in time", { cause });
  return new OctavoError("target_failed", `the connection to the target failed (${code})`, { cause });
}
