import { type ErrorCode, OctavoError } from "@octavo/protocol";
import type { Logger } from "pino";
import type { RequestContext } from "./request-context.js";

/**
 * The error shown to the client. After an abort it is the abort's reason, whatever the engine threw because of it. The text of a
 * foreign error may hold paths or data, so it only goes to the log.
 */
export function publicError(
  thrown: unknown,
  context: Pick<RequestContext, "signal" | "requestId">,
): OctavoError {
  if (context.signal.aborted) return OctavoError.from(context.signal.reason);
  if (thrown instanceof OctavoError) return thrown;
  const message = `an internal error occurred; the server's log has it under request id ${context.requestId}`;
  return new OctavoError("internal_error", message, { cause: thrown });
}

/** What limits do by design, those of clients among them: no sign of anything to repair. */
const byDesign: ReadonlySet<ErrorCode> = new Set(["deadline_exceeded", "overloaded", "shutting_down"]);

/** Logs the failures of the server: errors to look into, and at level info what its limits refused or ended. */
export function logFailure(log: Logger, error: OctavoError): void {
  if (error.status < 500) return;
  if (byDesign.has(error.code)) log.info({ code: error.code }, error.message);
  else log.error({ err: error, cause: error.cause }, error.message);
}
