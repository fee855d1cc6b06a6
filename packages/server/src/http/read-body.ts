import { isUtf8 } from "node:buffer";
import type { IncomingMessage, ServerResponse } from "node:http";
import { type BodyShare, OctavoError } from "@octavo/protocol";
import { JsonDepthGuard } from "./json-depth.js";
import { findJsonProblem } from "./json-position.js";

export interface BodyLimits {
  readonly maxBodyBytes: number;
  readonly bodyTimeoutMs: number;
}

/**
 * Reads and parses a JSON body. The type is checked before a byte is read, size and nesting while bytes arrive.
 * `share` grows with what arrives, and is the caller's to release.
 * Throws `unsupported_media_type`, `payload_too_large`, `overloaded`, `request_timeout`, `invalid_json` or `request_cancelled`.
 */
export async function readJsonBody(
  request: IncomingMessage,
  response: ServerResponse,
  limits: BodyLimits,
  share: BodyShare,
): Promise<unknown> {
  checkContentType(request);
  const declared = Number(request.headers["content-length"] ?? 0);
  if (declared > limits.maxBodyBytes) throw tooLarge(limits.maxBodyBytes, `${declared} bytes`);
  if (/^100-continue$/i.test(request.headers.expect ?? "")) response.writeContinue();
  const bytes = await readBytes(request, limits, share);
  if (bytes.length === 0)
    throw new OctavoError("invalid_json", "the request body is empty; send a JSON object");
  if (!isUtf8(bytes)) throw new OctavoError("invalid_json", "the request body is not valid UTF-8");
  return parseJson(bytes.toString("utf8"));
}

function checkContentType(request: IncomingMessage): void {
  const header = request.headers["content-type"];
  const [type = "", ...parameters] = (header ?? "")
    .toLowerCase()
    .split(";")
    .map((part) => part.trim());
  if (type !== "application/json" && !/^application\/[\w.-]+\+json$/.test(type)) {
    const got = header === undefined ? "no content type" : `"${header.slice(0, 64)}"`;
    throw new OctavoError(
      "unsupported_media_type",
      `send the body as "content-type: application/json"; got ${got}`,
    );
  }
  const charset = parameters
    .find((parameter) => parameter.startsWith("charset="))
    ?.slice("charset=".length)
    .replaceAll('"', "");
  if (charset !== undefined && charset !== "utf-8" && charset !== "utf8") {
    throw new OctavoError(
      "unsupported_media_type",
      `the body must be UTF-8; got charset "${charset.slice(0, 32)}"`,
    );
  }
  const encoding = request.headers["content-encoding"];
  if (encoding !== undefined && encoding !== "identity") {
    throw new OctavoError(
      "unsupported_media_type",
      `compressed bodies are not accepted; got content-encoding "${encoding.slice(0, 32)}"`,
    );
  }
}

function readBytes(request: IncomingMessage, limits: BodyLimits, share: BodyShare): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    const guard = new JsonDepthGuard();
    let length = 0;
    const timer = setTimeout(() => {
      const message = `the request body did not arrive within ${limits.bodyTimeoutMs} ms (${length} bytes came)`;
      fail(new OctavoError("request_timeout", message));
    }, limits.bodyTimeoutMs);
    const stop = (): void => {
      clearTimeout(timer);
      request.off("data", onData).off("end", onEnd).off("error", onCut).off("close", onCut);
      request.pause();
    };
    const fail = (error: OctavoError): void => {
      stop();
      reject(error);
    };
    const onData = (chunk: Buffer): void => {
      length += chunk.length;
      if (length > limits.maxBodyBytes) return fail(tooLarge(limits.maxBodyBytes, "more"));
      try {
        share.grow(chunk.length);
        guard.push(chunk);
      } catch (error) {
        return fail(OctavoError.from(error));
      }
      chunks.push(chunk);
    };
    const onEnd = (): void => {
      stop();
      const [first] = chunks;
      resolve(chunks.length === 1 && first !== undefined ? first : Buffer.concat(chunks, length));
    };
    const onCut = (): void =>
      fail(new OctavoError("request_cancelled", "the connection closed before the body was complete"));
    request.on("data", onData).on("end", onEnd).on("error", onCut).on("close", onCut);
  });
}

function tooLarge(maxBodyBytes: number, got: string): OctavoError {
  return new OctavoError(
    "payload_too_large",
    `the request body may have at most ${maxBodyBytes} bytes; got ${got}`,
  );
}

function parseJson(text: string): unknown {
  const body = text.startsWith("\ufeff") ? text.slice(1) : text;
  try {
    return JSON.parse(body);
  } catch (cause) {
    const problem = findJsonProblem(body);
    const where =
      problem === undefined
        ? ""
        : ` at line ${problem.line}, column ${problem.column} (offset ${problem.offset}): ${problem.message}`;
    throw new OctavoError("invalid_json", `the request body is not valid JSON${where}`, { cause });
  }
}
