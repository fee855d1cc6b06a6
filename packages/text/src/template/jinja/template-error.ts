import { OctavoError } from "@octavo/protocol/errors";

/** A failure of a template. The line is added where it is known. */
export function templateError(message: string, line?: number, cause?: unknown): OctavoError {
  return new OctavoError(
    "template_error",
    line === undefined ? message : `${message} (template line ${line})`,
    { cause },
  );
}
