import { setMaxListeners } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { performance } from "node:perf_hooks";
import { OctavoError, toErrorBody, type ErrorCode } from "@octavo/protocol";
import type { Logger } from "pino";
import { readJsonBody, type BodyLimits } from "./read-body.js";
import type { RequestContext } from "./request-context.js";
import { resolveRequestId } from "./request-id.js";

export interface ExchangeLimits extends BodyLimits {
  /** 0 is off. */
  readonly requestTimeoutMs: number;
}

/** A request from its headers to the end of its answer. Its signal aborts when the client leaves or time is up. */
export class Exchange implements RequestContext {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly requestId: string;
  readonly arrivalMs = performance.now();
  readonly log: Logger;
  /** The route's pattern, for metrics; paths themselves would make endless series. */
  handler = "unmatched";
  errorCode: ErrorCode | undefined;
  /** How an error is written; the route may have its own way. */
  errorBody: (error: OctavoError) => unknown = toErrorBody;
  readonly #abort = new AbortController();
  readonly #limits: ExchangeLimits;
  readonly #timer: NodeJS.Timeout | undefined;

  constructor(request: IncomingMessage, response: ServerResponse, log: Logger, limits: ExchangeLimits) {
    this.request = request;
    this.response = response;
    this.requestId = resolveRequestId(request.headers["x-request-id"]);
    this.log = log.child({ requestId: this.requestId });
    this.#limits = limits;
    // each prompt of a request listens
    setMaxListeners(0, this.#abort.signal);
    const { requestTimeoutMs } = limits;
    if (requestTimeoutMs > 0) {
      const expire = (): void =>
        this.abort(
          new OctavoError("deadline_exceeded", `the request was not complete after ${requestTimeoutMs} ms`),
        );
      this.#timer = setTimeout(expire, requestTimeoutMs);
    }
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  abort(reason: OctavoError): void {
    this.#abort.abort(reason);
  }

  readBody(): Promise<unknown> {
    return readJsonBody(this.request, this.response, this.#limits);
  }

  /** Called once, when the answer went out or its connection closed. */
  finish(): void {
    clearTimeout(this.#timer);
  }
}
