import { isUtf8 } from "node:buffer";
import type { IncomingMessage, ServerResponse } from "node:http";
import { type BodyShare, OctavoError, readBody } from "@octavo/protocol";
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
  const guard = new JsonDepthGuard();
  const bytes = await readBody(request, response, {
    maxBytes: limits.maxBodyBytes,
    timeoutMs: limits.bodyTimeoutMs,
    share,
    onChunk: (chunk) => guard.push(chunk),
  });
  if (bytes.length === 0)
    throw new OctavoError("invalid_json", "the request body is empty; send a JSON object");
  if (!isUtf8(bytes)) throw new OctavoError("invalid_json", "the request body is not valid UTF-8");
  return parseJson(bytes.toString("utf8"));
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
