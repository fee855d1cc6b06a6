import { OctavoError } from "@octavo/protocol/errors";

export function checkSize(param: string, value: number): number {
  if (Number.isSafeInteger(value) && value >= 1) return value;
  throw invalidOption(param, `an integer of at least 1, not ${value}`);
}

export function invalidOption(param: string, expected: string): OctavoError {
  return new OctavoError("invalid_option", `${param} must be ${expected}.`, { param });
}
