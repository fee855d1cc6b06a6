import { setMaxListeners } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { performance } from "node:perf_hooks";
import { OctavoError, toErrorBody, type ErrorCode } from "@octavo/protocol";
import type { Logger } from "pino";
import type { OctavoIds } from "./octavo-ids.js";
import { readJsonBody, type BodyLimits } from "./read-body.js";
import type { RequestContext } from "./request-context.js";
import { bindAccount, type RequestAccount } from "../metering/request-account.js";
import type { KeyIdentity } from "../tenants/tenant-settings.js";
import { bindTrace, type RequestTrace } from "../tracing/request-trace.js";
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
  readonly octavoId: string;
  readonly arrivalMs = performance.now();
  readonly log: Logger;
  /** What it is charged. */
  readonly account: RequestAccount;
  /** Undefined when tracing is off or the request is not sampled. */
  readonly trace: RequestTrace | undefined;
  /** The route's pattern, for metrics; paths themselves would make endless series. */
  handler = "unmatched";
  errorCode: ErrorCode | undefined;
  key: KeyIdentity | undefined;
  /** How an error is written; the route may have its own way. */
  errorBody: (error: OctavoError) => unknown = toErrorBody;
  readonly #ids: OctavoIds;
  readonly #abort = new AbortController();
  readonly #limits: ExchangeLimits;
  readonly #timer: NodeJS.Timeout | undefined;

  constructor(
    request: IncomingMessage,
    response: ServerResponse,
    log: Logger,
    limits: ExchangeLimits,
    ids: OctavoIds,
    account: RequestAccount,
    trace?: RequestTrace,
  ) {
    this.request = request;
    this.response = response;
    this.requestId = resolveRequestId(request.headers["x-request-id"]);
    this.#ids = ids;
    this.octavoId = ids.make(request.headers);
    this.account = account;
    bindAccount(this.signal, account);
    this.trace = trace;
    const { traceId } = this;
    this.log = log.child({ requestId: this.requestId, ...(traceId === undefined ? {} : { traceId }) });
    if (trace !== undefined) bindTrace(this.signal, trace);
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

  get traceId(): string | undefined {
    return this.trace?.context.traceId;
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** Of the answer as the client saw it; 499 when it left before there was one. */
  get httpStatus(): number {
    return this.response.headersSent ? this.response.statusCode : 499;
  }

  get isStream(): boolean {
    return String(this.response.getHeader("content-type")).startsWith("text/event-stream");
  }

  isOwn(octavoId: string): boolean {
    return this.#ids.isOf(octavoId, this.request.headers);
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
