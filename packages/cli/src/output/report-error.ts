import type { OctavoError } from "@octavo/protocol/errors";

/** One line with the code; the stack only of what should not have happened. */
export function reportError(error: OctavoError): void {
  process.stderr.write(`octavo: ${error.message} [${error.code}]\n`);
  if (error.code === "internal_error" && error.cause instanceof Error)
    process.stderr.write(`${error.cause.stack}\n`);
}
