import { OctavoError } from "@octavo/protocol/errors";

export function isInteger(value: number, least: number, most: number): boolean {
  return Number.isInteger(value) && value >= least && value <= most;
}

/** False for NaN. */
export function isReal(value: number, least: number, most: number): boolean {
  return value >= least && value <= most;
}

/** `value` as an integer within bounds, or `invalid_request` saying which number is wrong. */
export function checkInteger(
  what: string,
  value: number,
  least: number,
  most: number = Number.MAX_SAFE_INTEGER,
): void {
  if (isInteger(value, least, most)) return;
  const bounds = most === Number.MAX_SAFE_INTEGER ? `at least ${least}` : `from ${least} to ${most}`;
  throw new OctavoError("invalid_request", `${what} must be an integer ${bounds}, not ${value}.`);
}

export function checkReal(what: string, value: number, least: number, most: number): void {
  if (isReal(value, least, most)) return;
  const bounds = Number.isFinite(most) ? `from ${least} to ${most}` : `finite and at least ${least}`;
  throw new OctavoError("invalid_request", `${what} must be a number ${bounds}, not ${value}.`);
}

export function fail(message: string): never {
  throw new OctavoError("invalid_request", message);
}
