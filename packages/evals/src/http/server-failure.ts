import {
  asNumber,
  asRecord,
  asString,
  type ErrorCode,
  errorCodeHeader,
  errorCodes,
  parseJson,
} from "@octavo/protocol";
import type { AnswerFailure } from "../answers/answer.js";

/** Why a server gave no answer, and whether it may give one later. */
export interface ServerFailure extends AnswerFailure {
  readonly retryable: boolean;
  /** As the server asked with `Retry-After`. */
  readonly retryAfterMs: number | undefined;
}

const messageLength = 500;

export function serverFailure(code: string, message: string, retryable = true): ServerFailure {
  return {
    code,
    httpStatus: undefined,
    message: message.slice(0, messageLength),
    retryable,
    retryAfterMs: undefined,
  };
}

/** A refused request: Octavo's code from its header, else the server's own in OpenAI's error shape, else the status. */
export function failureOfStatus(
  status: number,
  headers: Readonly<Record<string, string>>,
  body: string,
): ServerFailure {
  const error = errorFields(parseJson(body)?.value);
  const code = headers[errorCodeHeader] ?? error?.code ?? `http_${status}`;
  const seconds = Number(headers["retry-after"] ?? Number.NaN);
  return {
    code,
    httpStatus: status,
    message: (error?.message ?? (body.trim() === "" ? `status ${status}` : body)).slice(0, messageLength),
    retryable: isKnown(code)
      ? errorCodes[code].retryable
      : status === 408 || status === 409 || status === 429 || status >= 500,
    retryAfterMs: Number.isFinite(seconds) && seconds >= 0 ? seconds * 1000 : undefined,
  };
}

/** An error that came as an event of a stream or as the whole body; undefined where `value` is none. */
export function failureOfEvent(value: unknown): ServerFailure | undefined {
  const error = errorFields(value);
  if (error === undefined) return undefined;
  const status = error.status;
  return {
    code: error.code ?? (status === undefined ? "stream_error" : `http_${status}`),
    httpStatus: status,
    message: (error.message ?? "the server sent an error event").slice(0, messageLength),
    retryable: status === undefined || status === 429 || status >= 500,
    retryAfterMs: undefined,
  };
}

interface ErrorFields {
  readonly code: string | undefined;
  readonly status: number | undefined;
  readonly message: string | undefined;
}

/** `{error: {message, type, code}}`, with a number as `code` (vLLM) or a word (OpenAI); or `{error: "text"}`. */
function errorFields(value: unknown): ErrorFields | undefined {
  const root = asRecord(value);
  const error = root["error"];
  if (error === undefined || error === null) {
    const detail = asString(root["detail"]) ?? asString(root["message"]);
    const isError = root["object"] === "error" || (root["choices"] === undefined && detail !== undefined);
    return isError
      ? { code: asString(root["type"]), status: asNumber(root["code"]), message: detail }
      : undefined;
  }
  if (typeof error === "string") return { code: undefined, status: undefined, message: error };
  const fields = asRecord(error);
  return {
    code: asString(fields["code"]) ?? asString(fields["type"]),
    status: asNumber(fields["code"]),
    message: asString(fields["message"]),
  };
}

function isKnown(code: string): code is ErrorCode {
  return Object.hasOwn(errorCodes, code);
}
