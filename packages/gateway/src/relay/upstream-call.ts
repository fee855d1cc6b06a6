import type { IncomingHttpHeaders } from "node:http";
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

/** One POST to a target over its pool: bytes in, bytes out, with times to the first byte and between bytes. */
export class UpstreamCall {
  readonly #listener: UpstreamListener;
  readonly #timeouts: UpstreamTimeouts;
  #controller: Dispatcher.DispatchController | undefined;
  #timer: NodeJS.Timeout | undefined;
  #hasBytes = false;
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
    this.#timer = setTimeout(() => this.#timeOut(), timeouts.firstByteMs);
    const { path, headers, body } = request;
    target.pool.dispatch(
      { path, method: "POST", headers, body },
      {
        onRequestStart: (controller) => {
          this.#controller = controller;
          if (this.#isOver) controller.abort(cancelled);
        },
        onResponseStart: (_, status, answerHeaders) => {
          if (!this.#isOver) listener.onStart(status, answerHeaders);
        },
        onResponseData: (_, chunk) => {
          if (this.#isOver) return;
          this.#waitForMore();
          listener.onData(chunk);
        },
        onResponseEnd: () => {
          if (this.#finish()) listener.onEnd();
        },
        onResponseError: (_, cause) => this.#fail(connectionFailure(cause)),
      },
    );
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
    this.#waitForMore();
    this.#controller?.resume();
  }

  #waitForMore(): void {
    if (this.#hasBytes && this.#timer !== undefined) {
      this.#timer.refresh();
      return;
    }
    this.#hasBytes = true;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#timeOut(), this.#timeouts.idleMs);
  }

  #timeOut(): void {
    const { firstByteMs, idleMs } = this.#timeouts;
    const message = this.#hasBytes
      ? `the target sent nothing for ${idleMs} ms`
      : `the target did not begin to answer within ${firstByteMs} ms`;
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

/** What undici is given as the reason of an abort; nobody sees it. */
const cancelled = new OctavoError("request_cancelled", "the gateway ended the call");

/** The address is the operator's matter: the message names the kind of failure alone. */
function connectionFailure(cause: Error & { readonly code?: string }): OctavoError {
  const code = cause.code ?? cause.name;
  if (code === "UND_ERR_CONNECT_TIMEOUT")
    return new OctavoError("target_timeout", "the target did not accept a connection in time", { cause });
  return new OctavoError("target_failed", `the connection to the target failed (${code})`, { cause });
}
