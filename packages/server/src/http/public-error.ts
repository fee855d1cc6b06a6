import { OctavoError } from "@octavo/protocol";
import type { RequestContext } from "./request-context.js";

/**
 * The error a client may see. After an abort the reason is what counts, whatever the engine threw because of it;
 * a foreign error's text may hold paths or data, so it stays in the log.
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
