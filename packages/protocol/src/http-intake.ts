import type { IncomingHttpHeaders, IncomingMessage, Server, ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { BodyShare } from "./body-memory.js";
import { errorCodeHeader, toErrorBody } from "./error-body.js";
import { OctavoError } from "./errors.js";

/** Where a server listens. */
export interface ListenAddress {
  /** Host name or address; for a Unix domain socket, its path. */
  readonly host: string;
  readonly port: number;
  readonly url: string;
}

export type ListenPlace = { readonly host: string; readonly port: number } | { readonly path: string };

/** Throws `invalid_option` where nobody can listen. */
export function listenAt(server: Server, place: ListenPlace, scheme = "http"): Promise<ListenAddress> {
  const isSocket = "path" in place;
  return new Promise((resolve, reject) => {
    const onError = (cause: NodeJS.ErrnoException): void => {
      const reason = cause.code === "EADDRINUSE" ? "it is in use" : cause.message;
      const shown = isSocket ? place.path : `${place.host}:${place.port}`;
      const param = isSocket ? "uds" : "port";
      reject(new OctavoError("invalid_option", `cannot listen on ${shown}: ${reason}`, { param, cause }));
    };
    server.once("error", onError);
    server.listen({ ...place, backlog: 1024 }, () => {
      server.off("error", onError);
      if (isSocket) {
        resolve({ host: place.path, port: 0, url: `${scheme}://localhost` });
        return;
      }
      const { address: host, family, port } = server.address() as AddressInfo;
      resolve({ host, port, url: `${scheme}://${family === "IPv6" ? `[${host}]` : host}:${port}` });
    });
  });
}

export interface BodyReading {
  readonly maxBytes: number;
  /** Without one, the HTTP server bounds all its connections together. */
  readonly timeoutMs?: number;
  /** Grows with what arrives, and is the caller's to release. */
  readonly share?: BodyShare;
  /** Sees every chunk; what it throws ends the reading. */
  readonly onChunk?: (chunk: Buffer) => void;
}

/**
 * The bytes of a JSON body. Type and announced size are checked before a byte is read; bodies are never decompressed. Throws
 * `unsupported_media_type`, `payload_too_large`, `overloaded`, `request_timeout` or `request_cancelled`.
 */
export function readBody(
  request: IncomingMessage,
  response: ServerResponse,
  { maxBytes, timeoutMs, share, onChunk }: BodyReading,
): Promise<Buffer> {
  requireJson(request.headers);
  const announced = Number(request.headers["content-length"] ?? 0);
  if (announced > maxBytes) throw tooLarge(maxBytes, `${announced} bytes`);
  if (/^100-continue$/i.test(request.headers.expect ?? "")) response.writeContinue();
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let length = 0;
    let isOver = false;
    const finish = (error?: OctavoError): void => {
      if (isOver) return;
      isOver = true;
      clearTimeout(timer);
      if (error === undefined) {
        resolve(chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks, length));
        return;
      }
      chunks.length = 0;
      request.pause();
      reject(error);
    };
    const timer =
      timeoutMs === undefined
        ? undefined
        : setTimeout(() => {
            const message = `the request body did not arrive within ${timeoutMs} ms (${length} bytes came)`;
            finish(new OctavoError("request_timeout", message));
          }, timeoutMs);
    request.on("data", (chunk: Buffer) => {
      if (isOver) return;
      length += chunk.length;
      if (length > maxBytes) {
        finish(tooLarge(maxBytes, "more"));
        return;
      }
      try {
        share?.grow(chunk.length);
        onChunk?.(chunk);
        chunks.push(chunk);
      } catch (thrown) {
        finish(OctavoError.from(thrown));
      }
    });
    request.on("end", () => finish());
    const onCut = (): void => {
      // an error costs more than a whole request, and every connection closes at last
      if (!isOver)
        finish(new OctavoError("request_cancelled", "the connection closed before the body was complete"));
    };
    request.on("error", onCut);
    request.on("close", onCut);
  });
}

const jsonType = /^application\/(?:json|[\w.-]+\+json)\s*(?:;|$)/i;
const foreignCharset = /;\s*charset\s*=\s*"?(?!utf-?8"?\s*(?:;|$))([^";]*)/i;

function requireJson(headers: IncomingHttpHeaders): void {
  const type = headers["content-type"];
  // what nearly all clients send
  if (type !== "application/json") {
    if (type === undefined || !jsonType.test(type)) {
      const got = type === undefined ? "no content type" : JSON.stringify(type.slice(0, 64));
      throw notTaken(`send the body as "content-type: application/json"; got ${got}`);
    }
    const charset = foreignCharset.exec(type)?.[1];
    if (charset !== undefined)
      throw notTaken(`the body must be UTF-8; got charset ${JSON.stringify(charset.slice(0, 32))}`);
  }
  const encoding = headers["content-encoding"] ?? "identity";
  if (encoding !== "identity")
    throw notTaken(
      `compressed bodies are not accepted; got content-encoding ${JSON.stringify(encoding.slice(0, 32))}`,
    );
}

function notTaken(message: string): OctavoError {
  return new OctavoError("unsupported_media_type", message);
}

function tooLarge(maxBytes: number, got: string): OctavoError {
  return new OctavoError(
    "payload_too_large",
    `the request body may have at most ${maxBytes} bytes; got ${got}`,
  );
}

/** The error for a connection that Node's HTTP parser or timers rejected. */
export function connectionError(cause: NodeJS.ErrnoException): OctavoError {
  if (cause.code === "HPE_HEADER_OVERFLOW")
    return new OctavoError("headers_too_large", "the request headers are too large", { cause });
  if (cause.code === "ERR_HTTP_REQUEST_TIMEOUT")
    return new OctavoError("request_timeout", "the request did not arrive in time", { cause });
  return new OctavoError("invalid_request", "the request is not valid HTTP/1.1", { cause });
}

/** Writes an HTTP answer to a socket that has no response object, and closes it. */
export function refuseConnection(socket: Socket, error: OctavoError): void {
  const body = JSON.stringify(toErrorBody(error));
  const lines = [
    `HTTP/1.1 ${error.status} ${error.type}`,
    "connection: close",
    "content-type: application/json",
    `${errorCodeHeader}: ${error.code}`,
    `content-length: ${Buffer.byteLength(body)}`,
  ];
  socket.end(`${lines.join("\r\n")}\r\n\r\n${body}`, () => socket.destroy());
}
