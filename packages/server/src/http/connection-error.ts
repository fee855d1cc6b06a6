import type { Socket } from "node:net";
import { OctavoError, toErrorBody } from "@octavo/protocol";
import { errorHeaders } from "./respond.js";

/** The error for a connection that Node's HTTP parser or timers rejected. */
export function connectionError(failure: NodeJS.ErrnoException): OctavoError {
  if (failure.code === "HPE_HEADER_OVERFLOW")
    return new OctavoError("headers_too_large", "the request headers are too large", { cause: failure });
  if (failure.code === "ERR_HTTP_REQUEST_TIMEOUT") {
    return new OctavoError("request_timeout", "the request did not arrive in time", { cause: failure });
  }
  return new OctavoError("invalid_request", "the request is not valid HTTP/1.1", { cause: failure });
}

/** Writes an HTTP answer to a socket that has no response object. */
export function refuseConnection(socket: Socket, error: OctavoError): void {
  const body = JSON.stringify(toErrorBody(error));
  const headers = Object.entries(errorHeaders(error)).map(([name, value]) => `${name}: ${value}\r\n`);
  const head = `HTTP/1.1 ${error.status} ${error.type}\r\nconnection: close\r\ncontent-type: application/json\r\n`;
  socket.end(`${head}content-length: ${Buffer.byteLength(body)}\r\n${headers.join("")}\r\n${body}`, () =>
    socket.destroy(),
  );
}
