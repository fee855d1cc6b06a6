import type { OctavoError } from "@octavo/protocol/errors";

/** The budget of the operation that runs now. Operations are synchronous, so there is one at a time. */
let left = Infinity;
let exceeded: (() => OctavoError) | undefined;

/** Runs an operation that may spend so many units of work; beyond, `spend` throws what `fail` makes. */
export function withWork<Result>(units: number, fail: () => OctavoError, run: () => Result): Result {
  const outer = { left, exceeded };
  left = units;
  exceeded = fail;
  try {
    return run();
  } finally {
    ({ left, exceeded } = outer);
  }
}

/** Counts work, so that what bounds it is the input and not how busy the machine is. */
export function spend(units: number): void {
  left -= units;
  if (left < 0 && exceeded !== undefined) throw exceeded();
}
