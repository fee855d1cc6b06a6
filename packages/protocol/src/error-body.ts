import { OctavoError } from "./errors.js";

/** OpenAI's error shape as vLLM fills it: `code` is the HTTP status. */
export interface ErrorBody {
  readonly error: {
    readonly message: string;
    readonly type: string;
    readonly param: string | null;
    readonly code: number;
  };
}

/** The header that carries the stable Octavo code (`context_length_exceeded`) beside vLLM's numeric one. */
export const errorCodeHeader = "x-octavo-error-code";

/** Response header with the `--replica-id` of the server that answered. */
export const replicaHeader = "x-octavo-replica";

/** Request header by which a cluster shows the `--replica-key` of its replicas. */
export const replicaKeyHeader = "x-octavo-replica-key";

/** Response header with the number of requests that waited to be admitted when this one arrived. */
export const queueDepthHeader = "x-octavo-queue-depth";

/** Response header that names the request's fields that nobody here knows. */
export const warningsHeader = "x-octavo-warnings";

export function toErrorBody(error: OctavoError): ErrorBody {
  return {
    error: { message: error.message, type: error.type, param: error.param ?? null, code: error.status },
  };
}
