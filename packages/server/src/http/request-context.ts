import type { IncomingMessage, ServerResponse } from "node:http";
import type { OctavoError } from "@octavo/protocol";
import type { Logger } from "pino";
import type { RequestAccount } from "../account/request-account.js";

/** One HTTP exchange. */
export interface RequestContext {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Echoed as `x-request-id`; for people and logs only: clients may send the same id twice. */
  readonly requestId: string;
  /** Sent as `x-octavo-request-id`; generated and not guessable, so evidence is stored under it. */
  readonly octavoId: string;
  /** Whether an `octavoId` belongs to a request of this one's owner. */
  isOwn(octavoId: string): boolean;
  /** `performance.now()` when the headers had arrived. */
  readonly arrivalMs: number;
  /** Its tenant, trace and cost. */
  readonly account: RequestAccount;
  /** Aborted with an OctavoError when the client left, a limit was hit or the handler failed. */
  readonly signal: AbortSignal;
  abort(reason: OctavoError): void;
  readonly log: Logger;
  /** Counts bytes that are kept for the request beside its body, as those of bodies. Throws `overloaded` when there is no room. */
  hold(bytes: number): void;
  readBody(): Promise<unknown>;
  /** The body, which is still there to be read. */
  peekBody(): Promise<unknown>;
}
