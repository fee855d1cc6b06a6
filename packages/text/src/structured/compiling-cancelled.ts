import { OctavoError } from "@octavo/protocol/errors";

export function compilingCancelled(): OctavoError {
  return new OctavoError("request_cancelled", "Compiling the constraint was cancelled.");
}
