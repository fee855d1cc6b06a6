import { OctavoError } from "@octavo/protocol";

/** Misuse is an error of the caller, never a NaN that travels on: these guards stand at every public function. */
function refuse(name: string, value: unknown, expected: string): never {
  throw new OctavoError("invalid_option", `${name} is ${String(value)}; expected ${expected}.`, {
    param: name,
  });
}

/** In [0, 1]. */
export function requireShare(name: string, value: number): void {
  if (!(value >= 0 && value <= 1)) refuse(name, value, "a number from 0 to 1");
}

/** In (0, 1): levels, confidences, error rates. */
export function requireLevel(name: string, value: number): void {
  if (!(value > 0 && value < 1)) refuse(name, value, "a number between 0 and 1, both excluded");
}

/** In (0, 1/2): the error rate of one side, of two. */
export function requireOneSidedAlpha(name: string, value: number): void {
  if (!(value > 0 && value < 0.5)) refuse(name, value, "a number between 0 and 0.5, both excluded");
}

export function requireFinite(name: string, value: number): void {
  if (!Number.isFinite(value)) refuse(name, value, "a finite number");
}

/** A scale whose square and reciprocal are numbers too. */
export function requireScale(name: string, value: number): void {
  if (!(value >= 1 / mostSize && value <= mostSize)) {
    refuse(name, value, `a number from ${1 / mostSize} to ${mostSize}`);
  }
}

/** Anything but NaN: distribution functions take infinities. */
export function requireNumber(name: string, value: number): void {
  if (typeof value !== "number" || Number.isNaN(value)) refuse(name, value, "a number");
}

export function requirePositive(name: string, value: number): void {
  if (!(value > 0 && value < Infinity)) refuse(name, value, "a finite number above 0");
}

/**
 * Shapes, degrees of freedom, means and trials of distributions: within these limits every function answers within
 * milliseconds and to full precision, beyond them nothing is asked in practice.
 */
export const leastShape = 1e-6;
export const mostShape = 1e10;

export function requireShape(name: string, value: number): void {
  if (!(value >= leastShape && value <= mostShape)) {
    refuse(name, value, `a number from ${leastShape} to ${mostShape}`);
  }
}

/** A whole number of at least `minimum`. */
export function requireCount(name: string, value: number, minimum = 0): void {
  if (!Number.isSafeInteger(value) || value < minimum)
    refuse(name, value, `a whole number from ${minimum} up`);
  if (value > mostShape) refuse(name, value, `at most ${mostShape}`);
}

/** Squares and their sums must not overflow. */
const mostSize = 1e120;

/** At least `minimum` values, finite and below 1e120 in size. */
export function requireSample(name: string, values: ArrayLike<number>, minimum = 1): void {
  if (values.length < minimum) {
    throw new OctavoError(
      "invalid_option",
      `${name} has ${values.length} values; at least ${minimum} are needed.`,
      { param: name },
    );
  }
  for (let i = 0; i < values.length; i++) {
    if (!(Math.abs(values[i]!) <= mostSize)) refuse(`${name}[${i}]`, values[i], "a finite number");
  }
}

export function requireSameLength(
  first: string,
  firstLength: number,
  second: string,
  secondLength: number,
): void {
  if (firstLength === secondLength) return;
  throw new OctavoError(
    "invalid_option",
    `${second} has ${secondLength} entries where ${first} has, or is, ${firstLength}; they must agree.`,
    { param: second },
  );
}

/** Finite counts or weights of at least 0 with a sum above 0. */
export function requireWeights(name: string, values: readonly number[]): void {
  requireSample(name, values);
  let sum = 0;
  for (const [index, value] of values.entries()) {
    if (value < 0) refuse(`${name}[${index}]`, value, "a number from 0 up");
    sum += value;
  }
  if (sum === 0) refuse(`the sum of ${name}`, sum, "more than 0");
}
