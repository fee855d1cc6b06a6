import type { Socket } from "node:net";
import { OctavoError, toErrorBody } from "@octavo/protocol";
import { errorHeaders } from "./respond.js";

/** What Node's parser and timers refused before it became a request. */
export function connectionError(failure: NodeJS.ErrnoException): OctavoError {
  if (failure.code === "HPE_HEADER_OVERFLOW")
    return new OctavoError("headers_too_large", "the request headers are too large", { cause: failure });
  if (failure.code === "ERR_HTTP_REQUEST_TIMEOUT") {
    return new OctavoError("request_timeout", "the request did not arrive in time", { cause: failure });
  }
  return new OctavoError("invalid_request", "the request is not valid HTTP/1.1", { cause: failure });
}

/** An answer written by hand, where there is no response object to write it. */
export function refuseConnection(socket: Socket, error: OctavoError): void {
  const body = JSON.stringify(toErrorBody(error));
  const headers = Object.entries(errorHeaders(error)).map(([name, value]) => `${name}: ${value}\r\n`);
  const head = `HTTP/1.1 ${error.status} ${error.type}\r\nconnection: close\r\ncontent-type: application/json\r\n`;
  socket.end(`${head}content-length: ${Buffer.byteLength(body)}\r\n${headers.join("")}\r\n${body}`, () =>
    socket.destroy(),
  );
}
