import type { IncomingMessage, ServerResponse } from "node:http";
import { performance } from "node:perf_hooks";
import { type BodyMemory, type BodyShare, OctavoError, type ErrorCode } from "@octavo/protocol";
import type { LlmOperation } from "@octavo/tracing";
import type { Logger } from "pino";
import type { OctavoIds } from "./octavo-ids.js";
import { readJsonBody, type BodyLimits } from "./read-body.js";
import type { RequestContext } from "./request-context.js";
import type { RequestAccount } from "../account/request-account.js";
import type { Route } from "./router.js";
import { resolveRequestId } from "./request-id.js";

export interface ExchangeLimits extends BodyLimits {
  /** 0 is off. */
  readonly requestTimeoutMs: number;
}

/** An HTTP request and its answer. The signal aborts when the client disconnects or the time limit passes. */
export class HttpExchange implements RequestContext {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly requestId: string;
  readonly octavoId: string;
  readonly arrivalMs = performance.now();
  readonly log: Logger;
  readonly account: RequestAccount;
  /** Undefined until it is found, and for a path that has none. */
  route: Route | undefined;
  errorCode: ErrorCode | undefined;
  readonly #ids: OctavoIds;
  readonly #abort = new AbortController();
  readonly #limits: ExchangeLimits;
  readonly #bodyShare: BodyShare;
  readonly #timer: NodeJS.Timeout | undefined;
  #peeked: Promise<unknown> | undefined;
  #isOver = false;

  constructor(
    request: IncomingMessage,
    response: ServerResponse,
    log: Logger,
    limits: ExchangeLimits,
    ids: OctavoIds,
    account: RequestAccount,
    bodyMemory: BodyMemory,
  ) {
    this.request = request;
    this.response = response;
    this.requestId = resolveRequestId(request.headers["x-request-id"]);
    this.#ids = ids;
    this.account = account;
    this.octavoId = ids.make(account.ownerId);
    const traceId = account.trace?.context.traceId;
    this.log = log.child({ requestId: this.requestId, ...(traceId === undefined ? {} : { traceId }) });
    this.#limits = limits;
    this.#bodyShare = bodyMemory.share();
    const { requestTimeoutMs } = limits;
    if (requestTimeoutMs > 0) {
      const expire = (): void =>
        this.abort(
          new OctavoError("deadline_exceeded", `the request was not complete after ${requestTimeoutMs} ms`),
        );
      this.#timer = setTimeout(expire, requestTimeoutMs);
    }
  }

  /** The route's pattern as a metrics label: raw paths would create unbounded series. */
  get handler(): string {
    return this.request.method === "OPTIONS" ? "options" : (this.route?.path ?? "unmatched");
  }

  /** What its span is called; undefined for an endpoint that runs no model. */
  get operation(): LlmOperation | undefined {
    return this.route === undefined || this.route.span === "none" ? undefined : this.route.span;
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** As the client saw it; 499 if it disconnected before the headers. */
  get httpStatus(): number {
    return this.response.headersSent ? this.response.statusCode : 499;
  }

  get isStream(): boolean {
    return String(this.response.getHeader("content-type")).startsWith("text/event-stream");
  }

  isOwn(octavoId: string): boolean {
    return this.#ids.isOf(octavoId, this.account.ownerId);
  }

  abort(reason: OctavoError): void {
    this.#abort.abort(reason);
  }

  hold(bytes: number): void {
    if (!this.#isOver) this.#bodyShare.grow(bytes);
  }

  /** Keeps no body that was read: an answer may take long. */
  readBody(): Promise<unknown> {
    const peeked = this.#peeked;
    this.#peeked = undefined;
    return peeked ?? this.#readBody();
  }

  peekBody(): Promise<unknown> {
    this.#peeked ??= this.#readBody();
    return this.#peeked;
  }

  #readBody(): Promise<unknown> {
    return readJsonBody(this.request, this.response, this.#limits, this.#bodyShare);
  }

  /** Called once, when the answer went out or its connection closed. */
  finish(): void {
    clearTimeout(this.#timer);
    this.#isOver = true;
    this.#bodyShare.release();
  }
}
