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

export function requireFinite(name: string, value: number): void {
  if (!Number.isFinite(value)) refuse(name, value, "a finite number");
}

/** Anything but NaN: distribution functions take infinities. */
export function requireNumber(name: string, value: number): void {
  if (typeof value !== "number" || Number.isNaN(value)) refuse(name, value, "a number");
}

export function requirePositive(name: string, value: number): void {
  if (!(value > 0 && value < Infinity)) refuse(name, value, "a finite number above 0");
}

/** A whole number of at least `minimum`. */
export function requireCount(name: string, value: number, minimum = 0): void {
  if (!Number.isSafeInteger(value) || value < minimum)
    refuse(name, value, `a whole number from ${minimum} up`);
}

/** At least `minimum` finite values. */
export function requireSample(name: string, values: ArrayLike<number>, minimum = 1): void {
  if (values.length < minimum) {
    throw new OctavoError(
      "invalid_option",
      `${name} has ${values.length} values; at least ${minimum} are needed.`,
      { param: name },
    );
  }
  for (let i = 0; i < values.length; i++) {
    if (!Number.isFinite(values[i])) refuse(`${name}[${i}]`, values[i], "a finite number");
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
    `${first} has ${firstLength} entries and ${second} has ${secondLength}; they must have as many.`,
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
