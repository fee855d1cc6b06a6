import type { Measured, ScorerOutcome } from "./registry.js";

type Extras = Omit<Measured, "status" | "value">;

/** Pass or fail, with the reason where it failed. */
export function verdict(passed: boolean, reason?: string, details?: Measured["details"]): Measured {
  return {
    status: "scored",
    value: passed ? 1 : 0,
    ...(passed || reason === undefined ? {} : { reason }),
    ...(details === undefined ? {} : { details }),
  };
}

/** A value from 0 to 1. */
export function measured(value: number, extras: Extras = {}): Measured {
  return { status: "scored", value, ...extras };
}

export function skipped(reason: string): ScorerOutcome {
  return { status: "skipped", reason };
}
