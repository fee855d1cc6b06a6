import type { IncomingMessage, ServerResponse } from "node:http";
import type { OctavoError } from "@octavo/protocol";
import type { Logger } from "pino";
import type { RequestAccount } from "../account/request-account.js";

/** One HTTP exchange. */
export interface RequestContext {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Echoed as `x-request-id`; for people and logs only, since two requests may come with one. */
  readonly requestId: string;
  /** Sent as `x-octavo-request-id`; nobody chose it and nobody can guess it, so evidence is found by it. */
  readonly octavoId: string;
  /** Whether an `octavoId` is of a request under the API key of this one. */
  isOwn(octavoId: string): boolean;
  /** `performance.now()` when the headers had arrived. */
  readonly arrivalMs: number;
  /** Its tenant, trace and cost. */
  readonly account: RequestAccount;
  /** Aborted with an OctavoError when the client left, a limit was hit or the handler failed. */
  readonly signal: AbortSignal;
  abort(reason: OctavoError): void;
  readonly log: Logger;
  readBody(): Promise<unknown>;
}
