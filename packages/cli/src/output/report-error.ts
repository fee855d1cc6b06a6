import type { OctavoError } from "@octavo/protocol/errors";

/** One line with the code, also of messages that quote several, and the stack of internal errors. */
export function reportError(error: OctavoError): void {
  process.stderr.write(`octavo: ${error.message.replaceAll(/\s*\n\s*/g, " ")} [${error.code}]\n`);
  if (error.code === "internal_error" && error.cause instanceof Error)
    process.stderr.write(`${error.cause.stack}\n`);
}
