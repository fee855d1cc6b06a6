/**
 * Every failure that Octavo reports has a stable code. One table maps a code to its HTTP status,
 * to the `type` of OpenAI's error shape as vLLM fills it, and to whether trying again can help.
 */
export const errorCodes = {
  // the request
  invalid_request: { status: 400, type: "BadRequestError", retryable: false },
  context_length_exceeded: { status: 400, type: "BadRequestError", retryable: false },
  unsupported_parameter: { status: 400, type: "BadRequestError", retryable: false },
  invalid_json: { status: 400, type: "BadRequestError", retryable: false },
  template_error: { status: 400, type: "BadRequestError", retryable: false },
  unauthorized: { status: 401, type: "AuthenticationError", retryable: false },
  model_not_found: { status: 404, type: "NotFoundError", retryable: false },
  not_found: { status: 404, type: "NotFoundError", retryable: false },
  method_not_allowed: { status: 405, type: "MethodNotAllowedError", retryable: false },
  request_timeout: { status: 408, type: "RequestTimeoutError", retryable: true },
  payload_too_large: { status: 413, type: "PayloadTooLargeError", retryable: false },
  unsupported_media_type: { status: 415, type: "UnsupportedMediaTypeError", retryable: false },
  request_quarantined: { status: 422, type: "UnprocessableEntityError", retryable: false },
  queue_full: { status: 429, type: "RateLimitError", retryable: true },
  headers_too_large: { status: 431, type: "BadRequestError", retryable: false },
  request_cancelled: { status: 499, type: "RequestCancelledError", retryable: false },
  // the server
  internal_error: { status: 500, type: "InternalServerError", retryable: false },
  not_implemented: { status: 501, type: "NotImplementedError", retryable: false },
  overloaded: { status: 503, type: "ServiceUnavailableError", retryable: true },
  shutting_down: { status: 503, type: "ServiceUnavailableError", retryable: true },
  deadline_exceeded: { status: 504, type: "GatewayTimeoutError", retryable: true },
  output_invalid: { status: 502, type: "BadGatewayError", retryable: true },
  engine_failed: { status: 503, type: "ServiceUnavailableError", retryable: true },
  device_lost: { status: 503, type: "ServiceUnavailableError", retryable: true },
  // artifacts and the machine; met at start-up more often than over HTTP
  artifact_not_found: { status: 404, type: "NotFoundError", retryable: false },
  artifact_invalid: { status: 400, type: "BadRequestError", retryable: false },
  artifact_unsupported: { status: 400, type: "BadRequestError", retryable: false },
  hub_unreachable: { status: 502, type: "BadGatewayError", retryable: true },
  hub_denied: { status: 403, type: "PermissionDeniedError", retryable: false },
  integrity_failed: { status: 502, type: "BadGatewayError", retryable: true },
  out_of_memory: { status: 507, type: "InsufficientStorageError", retryable: false },
  disk_full: { status: 507, type: "InsufficientStorageError", retryable: false },
  native_unavailable: { status: 500, type: "InternalServerError", retryable: false },
  invalid_option: { status: 400, type: "BadRequestError", retryable: false },
  // evaluation
  dataset_invalid: { status: 400, type: "BadRequestError", retryable: false },
  judge_failed: { status: 502, type: "BadGatewayError", retryable: true },
  target_unreachable: { status: 502, type: "BadGatewayError", retryable: true },
  runner_unavailable: { status: 503, type: "ServiceUnavailableError", retryable: true },
  // the gateway
  guardrail_blocked: { status: 400, type: "BadRequestError", retryable: false },
  permission_denied: { status: 403, type: "PermissionDeniedError", retryable: false },
  rate_limit_exceeded: { status: 429, type: "RateLimitError", retryable: true },
  budget_exceeded: { status: 429, type: "RateLimitError", retryable: false },
  target_rate_limited: { status: 429, type: "RateLimitError", retryable: true },
  target_rejected: { status: 400, type: "BadRequestError", retryable: false },
  target_failed: { status: 502, type: "BadGatewayError", retryable: true },
  target_answer_invalid: { status: 502, type: "BadGatewayError", retryable: true },
  stream_interrupted: { status: 502, type: "BadGatewayError", retryable: true },
  target_timeout: { status: 504, type: "GatewayTimeoutError", retryable: true },
  no_target: { status: 503, type: "ServiceUnavailableError", retryable: true },
  guardrail_unavailable: { status: 503, type: "ServiceUnavailableError", retryable: true },
  store_unavailable: { status: 503, type: "ServiceUnavailableError", retryable: true },
} as const satisfies Record<string, ErrorTraits>;

interface ErrorTraits {
  readonly status: number;
  readonly type: string;
  readonly retryable: boolean;
}

export type ErrorCode = keyof typeof errorCodes;

export interface OctavoErrorOptions {
  /** The request field or flag at fault, e.g. `"messages[0].content"`. */
  readonly param?: string;
  readonly cause?: unknown;
  /** Seconds after which trying again may help; becomes `Retry-After`. */
  readonly retryAfterSeconds?: number;
}

/** The one error class: a stable code, a message that says what was wrong, where, and what to do. */
export class OctavoError extends Error {
  override readonly name = "OctavoError";
  readonly code: ErrorCode;
  readonly param: string | undefined;
  readonly retryAfterSeconds: number | undefined;

  constructor(code: ErrorCode, message: string, options: OctavoErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.param = options.param;
    this.retryAfterSeconds = options.retryAfterSeconds;
  }

  get status(): number {
    return errorCodes[this.code].status;
  }

  get type(): string {
    return errorCodes[this.code].type;
  }

  get retryable(): boolean {
    return errorCodes[this.code].retryable;
  }

  /** Any thrown value as an OctavoError; foreign errors become `internal_error` with the cause kept. */
  static from(thrown: unknown): OctavoError {
    if (thrown instanceof OctavoError) return thrown;
    const message = thrown instanceof Error ? thrown.message : String(thrown);
    return new OctavoError("internal_error", message, { cause: thrown });
  }
}

const systemProblems: Readonly<Record<string, string>> = {
  ENOENT: "there is no such file or folder",
  EACCES: "permission denied",
  EPERM: "permission denied",
  EISDIR: "it is a folder",
  ENOTDIR: "a part of its path is a file",
  EEXIST: "a file of that name is in the way",
  ENOSPC: "the disk is full",
  EDQUOT: "the disk quota is used up",
  EROFS: "the file system is read-only",
  ENAMETOOLONG: "the name is too long",
  ELOOP: "its links lead in a circle",
  EMFILE: "too many files are open",
  EADDRINUSE: "the port is in use",
  EADDRNOTAVAIL: "this machine has no such address",
};

/** Why a file could not be used, or an address not be listened on, in words that leave its name to the caller; other errors' own message. */
export function systemProblem(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown);
  const known = "code" in thrown && typeof thrown.code === "string" ? systemProblems[thrown.code] : undefined;
  return known ?? thrown.message;
}

/** The known name that was probably meant; undefined if none is near. */
export function nearestName(written: string, known: readonly string[]): string | undefined {
  const nearest = known
    .map((name) => ({ name, distance: editDistance(written.toLowerCase(), name.toLowerCase()) }))
    .reduce((best, next) => (next.distance < best.distance ? next : best), {
      name: "",
      distance: Number.POSITIVE_INFINITY,
    });
  return nearest.distance <= Math.max(2, written.length / 3) && nearest.distance < written.length
    ? nearest.name
    : undefined;
}

/** Levenshtein's distance. */
function editDistance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (const [index, letter] of Array.from(from).entries()) {
    const next = [index + 1];
    for (const [column, other] of Array.from(to).entries())
      next.push(
        Math.min(
          (row[column] ?? 0) + (letter === other ? 0 : 1),
          (row[column + 1] ?? 0) + 1,
          (next[column] ?? 0) + 1,
        ),
      );
    row = next;
  }
  return row.at(-1) ?? 0;
}
