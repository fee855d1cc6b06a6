import { OctavoError } from "@octavo/protocol";
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
