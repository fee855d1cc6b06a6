import type { IncomingMessage, ServerResponse } from "node:http";
import { drainThenEnd, errorCodeHeader, OctavoError, toErrorBody } from "@octavo/protocol";

/** Bodies declared up to this size are read and dropped so that the connection can be kept. */
const droppableBytes = 1024 * 1024;

export function sendJson(response: ServerResponse, status: number, value: unknown): void {
  sendText(response, status, "application/json", JSON.stringify(value));
}

export function sendText(response: ServerResponse, status: number, contentType: string, text: string): void {
  sendBytes(response, status, contentType, Buffer.from(text, "utf8"));
}

export function sendBytes(response: ServerResponse, status: number, contentType: string, body: Buffer): void {
  response.writeHead(status, { "content-type": contentType, "content-length": body.length });
  response.end(body);
}

/** Headers that every answer of this error carries, streams apart. */
export function errorHeaders(error: OctavoError): Readonly<Record<string, string>> {
  const headers: Record<string, string> = { [errorCodeHeader]: error.code };
  if (error.retryAfterSeconds !== undefined)
    headers["retry-after"] = String(Math.ceil(error.retryAfterSeconds));
  else if (error.status === 429 || error.code === "shutting_down") headers["retry-after"] = "1";
  if (error.code === "unauthorized") headers["www-authenticate"] = 'Bearer realm="octavo"';
  return headers;
}

/**
 * Answers with an error, in vLLM's shape unless another is given. If the client is still sending a body that will not be read, the
 * answer is sent first, the rest of the body is drained within bounds, and the connection is closed: closing at once would reset
 * the connection and lose the answer.
 */
export function sendError(
  request: IncomingMessage,
  response: ServerResponse,
  error: OctavoError,
  errorBody: unknown = toErrorBody(error),
): void {
  if (response.headersSent || response.destroyed) {
    if (!response.writableEnded) response.destroy();
    return;
  }
  for (const [name, value] of Object.entries(errorHeaders(error))) response.setHeader(name, value);
  const declared = Number(request.headers["content-length"] ?? Number.NaN);
  const isDroppable = request.complete || declared <= droppableBytes || !hasBody(request);
  if (isDroppable && error.code !== "request_timeout") {
    sendJson(response, error.status, errorBody);
    return;
  }
  const body = Buffer.from(JSON.stringify(errorBody), "utf8");
  response.writeHead(error.status, {
    "content-type": "application/json",
    "content-length": body.length,
    connection: "close",
  });
  response.write(body);
  drainThenEnd(request, response);
}

function hasBody(request: IncomingMessage): boolean {
  return (
    request.headers["content-length"] !== undefined || request.headers["transfer-encoding"] !== undefined
  );
}
