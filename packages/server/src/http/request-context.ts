import type { IncomingMessage, ServerResponse } from "node:http";
import type { OctavoError } from "@octavo/protocol";
import type { Logger } from "pino";

/** One HTTP exchange. */
export interface RequestContext {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Echoed as `x-request-id`; for people and logs only. */
  readonly requestId: string;
  /** `performance.now()` when the headers had arrived. */
  readonly arrivalMs: number;
  /** Aborted with an OctavoError when the client left, a limit was hit or the handler failed. */
  readonly signal: AbortSignal;
  abort(reason: OctavoError): void;
  readonly log: Logger;
  readBody(): Promise<unknown>;
}
