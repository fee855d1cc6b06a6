import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createSecureServer, type Server as SecureServer } from "node:https";
import type { Socket } from "node:net";
import { performance } from "node:perf_hooks";
import {
  BodyMemory,
  connectionError,
  listenAt,
  type ListenAddress,
  OctavoError,
  refuseConnection,
  replicaHeader,
} from "@octavo/protocol";
import type { Logger } from "pino";
import type { ServerConfig } from "../config.js";
import { RequestAccount } from "../account/request-account.js";
import { type ServerTracing, traceResponse, traceResponseHeader } from "../account/server-tracing.js";
import type { HttpMetrics } from "../metrics/http-metrics.js";
import type { TenantResolver } from "../tenants/tenant-resolver.js";
import type { ApiKeys } from "./api-keys.js";
import type { Dispatcher } from "./dispatcher.js";
import { HttpExchange } from "./exchange.js";
import { OctavoIds } from "./octavo-ids.js";
import { readTls, type TlsMaterial } from "./tls.js";

export interface HttpListenerOptions {
  readonly config: ServerConfig;
  readonly dispatcher: Dispatcher;
  readonly metrics: HttpMetrics;
  readonly log: Logger;
  readonly keys: ApiKeys;
  readonly tenants: TenantResolver;
  readonly tracing: ServerTracing | undefined;
  /** Called in order with every exchange that is over. */
  readonly onOver: readonly ((exchange: HttpExchange) => void)[];
}

/** How long aborted requests may take to send their error. */
const farewellMs = 1000;

/** Accepts and counts connections and their exchanges, and cleans up however they end. */
export class HttpListener {
  readonly #options: HttpListenerOptions;
  readonly #config: ServerConfig;
  readonly #metrics: HttpMetrics;
  readonly #ids = new OctavoIds();
  readonly #bodyMemory: BodyMemory;
  readonly #tls: TlsMaterial | undefined;
  readonly #server: Server | SecureServer;
  readonly #exchanges = new Set<HttpExchange>();
  readonly #exchangesBySocket = new WeakMap<Socket, Set<HttpExchange>>();
  readonly #idleWaiters = new Set<() => void>();

  constructor(options: HttpListenerOptions) {
    const { config } = options;
    this.#options = options;
    this.#config = config;
    this.#metrics = options.metrics;
    this.#bodyMemory = new BodyMemory(config.maxBodyMemoryBytes);
    this.#tls = readTls(config);
    this.#server = this.#createServer();
  }

  async listen(): Promise<ListenAddress> {
    const { host, port, uds } = this.#config;
    const place = uds === undefined ? { host, port } : { path: uds };
    const address = await listenAt(this.#server, place, this.#tls === undefined ? "http" : "https");
    this.#server.on("error", (error) =>
      this.#options.log.error({ err: error }, "the listening socket failed"),
    );
    return address;
  }

  /** Resolves with the remaining time, in ms, when no request is being answered or the timeout passes. */
  async whenIdle(timeoutMs: number): Promise<number> {
    const deadline = performance.now() + timeoutMs;
    if (this.#exchanges.size > 0) {
      await new Promise<void>((resolve) => {
        const finish = (): void => {
          clearTimeout(timer);
          this.#idleWaiters.delete(finish);
          resolve();
        };
        const timer = setTimeout(finish, timeoutMs);
        this.#idleWaiters.add(finish);
      });
    }
    return Math.max(0, deadline - performance.now());
  }

  /** New connections get this certificate; open ones keep theirs. */
  replaceTls(material: TlsMaterial): void {
    if (!("setSecureContext" in this.#server))
      throw new OctavoError("invalid_option", "a server of plain HTTP becomes one of HTTPS by a restart", {
        param: "ssl_certfile",
      });
    this.#server.setSecureContext(material);
  }

  /** Aborts running requests, gives them a moment to send their error, and closes every connection. */
  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    const reason = new OctavoError(
      "shutting_down",
      "the server is shutting down and ended this request before it was complete",
    );
    for (const exchange of this.#exchanges) exchange.abort(reason);
    await this.whenIdle(farewellMs);
    this.#server.closeAllConnections();
    await closed;
  }

  #createServer(): Server | SecureServer {
    const { headersTimeoutMs, bodyTimeoutMs, keepAliveTimeoutMs, maxHeaderBytes, maxConnections } =
      this.#config;
    const options = {
      headersTimeout: headersTimeoutMs,
      // a slow body is answered by the body reader; this bounds what is read after an early answer
      requestTimeout: headersTimeoutMs + bodyTimeoutMs,
      connectionsCheckingInterval: Math.min(1000, Math.max(10, Math.floor(headersTimeoutMs / 4))),
      keepAliveTimeout: keepAliveTimeoutMs,
      maxHeaderSize: maxHeaderBytes,
      noDelay: true,
    };
    const server =
      this.#tls === undefined ? createServer(options) : createSecureServer({ ...options, ...this.#tls });
    // their size is bounded; by default Node drops what comes behind the first 2,000 in silence
    server.maxHeadersCount = 0;
    if (maxConnections > 0) server.maxConnections = maxConnections;
    const accept = (request: IncomingMessage, response: ServerResponse): void =>
      this.#accept(request, response);
    server.on("request", accept);
    server.on("checkContinue", accept);
    server.on("checkExpectation", accept);
    // Requests over TLS name the socket that decrypts.
    const opened = this.#tls === undefined ? "connection" : "secureConnection";
    server.on(opened, (socket: Socket) => this.#track(socket));
    server.on("tlsClientError", (error: Error) =>
      this.#options.log.debug({ err: error }, "a TLS handshake failed"),
    );
    server.on("clientError", (failure: NodeJS.ErrnoException, socket: Socket) =>
      this.#refuse(failure, socket),
    );
    server.on("drop", () => this.#metrics.connectionRefused());
    return server;
  }

  /** One close listener per connection, however many requests a client pipelines on it. */
  #track(socket: Socket): void {
    const exchanges = new Set<HttpExchange>();
    this.#exchangesBySocket.set(socket, exchanges);
    this.#metrics.connectionOpened();
    socket.once("close", () => {
      this.#metrics.connectionClosed();
      for (const exchange of exchanges) this.#finish(exchange);
    });
  }

  #accept(request: IncomingMessage, response: ServerResponse): void {
    const { log, keys, tenants, tracing, dispatcher } = this.#options;
    const trace = tracing?.begin(request.headers);
    const account = new RequestAccount(request.headers, tenants, { key: keys.find(request.headers), trace });
    const exchange = new HttpExchange(
      request,
      response,
      log,
      this.#config,
      this.#ids,
      account,
      this.#bodyMemory,
    );
    this.#exchanges.add(exchange);
    this.#exchangesBySocket.get(request.socket)?.add(exchange);
    this.#metrics.started();
    response.setHeader("x-request-id", exchange.requestId);
    response.setHeader("x-octavo-request-id", exchange.octavoId);
    if (this.#config.replicaId !== "") response.setHeader(replicaHeader, this.#config.replicaId);
    if (trace !== undefined) response.setHeader(traceResponseHeader, traceResponse(trace.context));
    response.once("close", () => this.#finish(exchange));
    response.once("prefinish", () => this.#limitLastBytes(response));
    response.on("error", (error) => exchange.log.debug({ err: error }, "response failed"));
    void dispatcher.dispatch(exchange);
  }

  /** Closes the connection of a client that never reads the end of its answer. */
  #limitLastBytes(response: ServerResponse): void {
    const { stallTimeoutMs, keepAliveTimeoutMs } = this.#config;
    const { socket } = response;
    if (stallTimeoutMs === 0 || socket === null) return;
    socket.setTimeout(stallTimeoutMs);
    // otherwise node sets the time to wait for the next request
    if (keepAliveTimeoutMs === 0) response.once("finish", () => socket.setTimeout(0));
  }

  /** Runs once per exchange: when its answer was sent, or its connection closed before. */
  #finish(exchange: HttpExchange): void {
    if (!this.#exchanges.delete(exchange)) return;
    const { request, response } = exchange;
    this.#exchangesBySocket.get(request.socket)?.delete(exchange);
    if (!response.writableFinished && !exchange.signal.aborted) {
      this.#metrics.disconnected();
      exchange.errorCode = "request_cancelled";
      exchange.abort(new OctavoError("request_cancelled", "the client closed the connection"));
    }
    exchange.finish();
    if (exchange.errorCode !== undefined) this.#metrics.failed(exchange.errorCode);
    this.#metrics.finished(
      request.method ?? "",
      exchange.handler,
      exchange.httpStatus,
      performance.now() - exchange.arrivalMs,
    );
    for (const notify of this.#options.onOver) notify(exchange);
    if (this.#exchanges.size === 0) for (const waiter of this.#idleWaiters) waiter();
  }

  /** Answers a connection that failed before it became an exchange: not HTTP, or headers too slow or too large. */
  #refuse(failure: NodeJS.ErrnoException, socket: Socket): void {
    const exchanges = [...(this.#exchangesBySocket.get(socket) ?? [])];
    // only if no other answer has begun on this socket or is due first
    const isFree =
      exchanges.length === 0 || (exchanges.length === 1 && exchanges[0]?.response.headersSent === false);
    if (failure.code === "ECONNRESET" || !socket.writable || !isFree) {
      socket.destroy();
      return;
    }
    const error = connectionError(failure);
    this.#metrics.failed(error.code);
    refuseConnection(socket, error);
  }
}
