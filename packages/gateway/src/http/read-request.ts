import type { IncomingMessage, ServerResponse } from "node:http";
import { type BodyShare, OctavoError } from "@octavo/protocol";

/**
 * The body's bytes. Type and announced size are checked before a byte is read; bodies are never decompressed. Throws
 * `unsupported_media_type`, `payload_too_large`, `overloaded` or `request_cancelled`. How long a body may take is the HTTP server's to
 * bound, for all connections together: a timer for each would cost more than the rest of the reading.
 */
export function readRequest(
  request: IncomingMessage,
  response: ServerResponse,
  maxBodyBytes: number,
  /** Grows with what arrives, and is the caller's to release. */
  share?: BodyShare,
): Promise<Buffer> {
  checkHeaders(request, maxBodyBytes);
  if (request.headers.expect !== undefined) response.writeContinue();
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let length = 0;
    let isOver = false;
    const finish = (error?: OctavoError): void => {
      if (isOver) return;
      isOver = true;
      if (error !== undefined) {
        request.pause();
        reject(error);
      } else
        resolve(chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks, length));
    };
    request.on("data", (chunk: Buffer) => {
      if (isOver) return;
      length += chunk.length;
      if (length > maxBodyBytes) {
        finish(tooLarge(maxBodyBytes));
        return;
      }
      try {
        share?.grow(chunk.length);
        chunks.push(chunk);
      } catch (thrown) {
        chunks.length = 0;
        finish(OctavoError.from(thrown));
      }
    });
    request.on("end", () => finish());
    const onCut = (): void => {
      // an error costs more than a whole request, and every connection closes at last
      if (!isOver)
        finish(
          new OctavoError(
            "request_cancelled",
            "the client closed the connection before its request was complete",
          ),
        );
    };
    request.on("error", onCut);
    request.on("close", onCut);
  });
}

function checkHeaders({ headers }: IncomingMessage, maxBodyBytes: number): void {
  const type = headers["content-type"] ?? "";
  if (!/^application\/json\s*(?:;\s*charset="?utf-?8"?\s*)?$/i.test(type))
    throw new OctavoError(
      "unsupported_media_type",
      `send the body as "content-type: application/json" in UTF-8; got ${JSON.stringify(type.slice(0, 64))}`,
    );
  const encoding = headers["content-encoding"] ?? "identity";
  if (encoding !== "identity")
    throw new OctavoError(
      "unsupported_media_type",
      `compressed bodies are not accepted; got content-encoding ${JSON.stringify(encoding.slice(0, 32))}`,
    );
  if (Number(headers["content-length"] ?? 0) > maxBodyBytes) throw tooLarge(maxBodyBytes);
}

function tooLarge(maxBodyBytes: number): OctavoError {
  return new OctavoError("payload_too_large", `the request body is larger than ${maxBodyBytes} bytes`);
}
