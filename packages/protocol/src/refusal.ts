import { OctavoError } from "./errors.js";

/** An `invalid_request` that names the field it is about. */
export function invalidField(param: string, problem: string, cause?: unknown): OctavoError {
  return new OctavoError("invalid_request", `${param}: ${problem}`, { param, cause });
}

/** An `unsupported_parameter` that names the field it is about. */
export function unsupportedField(param: string, problem: string): OctavoError {
  return new OctavoError("unsupported_parameter", `${param}: ${problem}`, { param });
}
