import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import {
  connectionError,
  errorCodeHeader,
  listenAt,
  type ListenAddress,
  OctavoError,
  refuseConnection,
  toErrorBody,
} from "@octavo/protocol";
import type { GatewayConfig } from "../config/schema.js";
import { anonymousCaller, type GatewayCaller } from "../exchange/exchange.js";
import type { Gateway } from "../operation/gateway.js";
import { operationPaths, ownPaths } from "./paths.js";

/** The gateway's public port: bounds connections and headers, and hands calls to the gateway. */
export class GatewayListener {
  readonly #gateway: Gateway;
  readonly #server: Server;

  constructor(gateway: Gateway, limits: GatewayConfig["limits"]) {
    this.#gateway = gateway;
    this.#server = createServer({
      headersTimeout: limits.headers_timeout,
      requestTimeout: limits.headers_timeout + limits.body_timeout,
      connectionsCheckingInterval: checkIntervalMs(limits),
      maxHeaderSize: limits.max_headers,
      noDelay: true,
      keepAliveTimeout: 60_000,
      insecureHTTPParser: false,
    });
    // their size is bounded; by default Node drops what comes behind the first 2,000 in silence
    this.#server.maxHeadersCount = 0;
    if (limits.max_connections > 0) this.#server.maxConnections = limits.max_connections;
    const answer = (request: IncomingMessage, response: ServerResponse): void =>
      this.#answer(request, response);
    this.#server.on("request", answer);
    this.#server.on("checkContinue", answer);
    this.#server.on("clientError", refuse);
  }

  listen(host: string, port: number): Promise<ListenAddress> {
    return listenAt(this.#server, { host, port });
  }

  /** Takes no new connections; resolves when the last one is closed. */
  async close(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#server.close(() => resolve());
      this.#server.closeIdleConnections();
      setTimeout(() => this.#server.closeAllConnections(), 1000).unref();
    });
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const url = request.url ?? "/";
    const query = url.indexOf("?");
    const path = query < 0 ? url : url.slice(0, query);
    const operation = operationPaths.get(path);
    if (operation !== undefined && request.method === "POST") {
      void this.#gateway.answer(request, response, operation);
      return;
    }
    this.#answerOwn(path, request, response).catch((thrown: unknown) => {
      if (!response.headersSent) sendPlainError(response, OctavoError.from(thrown));
    });
    request.resume();
  }

  async #answerOwn(path: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (operationPaths.has(path)) throw wrongMethod(response, "POST");
    const access = ownPaths.get(path);
    if (access === undefined)
      throw new OctavoError("not_found", `There is no endpoint ${path.slice(0, 128)}.`);
    if (request.method !== "GET" && request.method !== "HEAD") throw wrongMethod(response, "GET");
    const caller = access === "public" ? anonymousCaller : await this.#gateway.callerOf(request.headers);
    if (path === "/v1/models") sendOwnJson(response, 200, modelList(this.#gateway, caller));
    else if (this.#gateway.isDraining) throw new OctavoError("shutting_down", "the gateway is shutting down");
    else sendOwnJson(response, 200, { status: "ok" });
  }
}

/** All models that the caller may name, whichever targets have them. */
function modelList(gateway: Gateway, { models }: GatewayCaller): object {
  return {
    object: "list",
    data: [...gateway.runtime.router.models()]
      .filter(([id]) => models === undefined || models.includes(id))
      .map(([id, targets]) => ({
        id,
        object: "model",
        created: 0,
        owned_by: "octavo-gateway",
        octavo: { targets },
      })),
  };
}

/** How often Node looks for connections whose headers or bodies take too long. */
function checkIntervalMs({ headers_timeout, body_timeout }: GatewayConfig["limits"]): number {
  return Math.min(5000, Math.max(10, Math.floor(Math.min(headers_timeout, body_timeout) / 4)));
}

export function sendOwnJson(response: ServerResponse, status: number, value: object): void {
  const body = Buffer.from(JSON.stringify(value));
  response.writeHead(status, { "content-type": "application/json", "content-length": body.length });
  response.end(body);
}

export function sendPlainError(response: ServerResponse, error: OctavoError): void {
  response.setHeader(errorCodeHeader, error.code);
  sendOwnJson(response, error.status, toErrorBody(error));
}

function wrongMethod(response: ServerResponse, allowed: string): OctavoError {
  response.setHeader("allow", allowed);
  return new OctavoError("method_not_allowed", `This endpoint takes ${allowed}.`);
}

/** Answers what Node's parser refused: headers that are too large or too slow, lengths that contradict each other, no HTTP. */
function refuse(failure: NodeJS.ErrnoException, socket: Socket): void {
  if (failure.code === "ECONNRESET" || !socket.writable || socket.bytesWritten > 0) socket.destroy();
  else refuseConnection(socket, connectionError(failure));
}
