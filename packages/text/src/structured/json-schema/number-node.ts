import {
  all,
  byteRange,
  choice,
  empty,
  type Node,
  nothing,
  optional,
  repeat,
  sequence,
  text,
} from "../node.js";
import { type Decimal, decimalOf } from "./decimal.js";

/** Digits before the point, unless a bound has more; and after it. Finite numbers only, and no endless ones. */
const maxIntegerDigits = 20;
const maxFractionDigits = 20;
/** Digits that doubles keep apart: a bounded number has no more, or a validator would see it rounded onto the bound. */
export const exactDigits = 15;
const maxExponentDigits = 2;

const digit = byteRange(0x30, 0x39);
const nonZeroDigits = byteRange(0x31, 0x39);

export interface NumberBounds {
  readonly minimum?: number | undefined;
  readonly exclusiveMinimum?: number | undefined;
  readonly maximum?: number | undefined;
  readonly exclusiveMaximum?: number | undefined;
}

export function digits(min: number, max: number): Node {
  return repeat(digit, min, max);
}

function digitRange(first: number, last: number): Node {
  return last < first ? nothing : byteRange(0x30 + first, 0x30 + last);
}

/** Any integer (without fraction and exponent). */
export const anyInteger: Node = sequence(
  optional(text("-")),
  choice(text("0"), sequence(nonZeroDigits, digits(0, maxIntegerDigits - 1))),
);

export const anyNumber: Node = sequence(
  anyInteger,
  optional(sequence(text("."), digits(1, maxFractionDigits))),
  optional(
    sequence(
      choice(text("e"), text("E")),
      optional(choice(text("+"), text("-"))),
      digits(1, maxExponentDigits),
    ),
  ),
);

export function hasBounds(bounds: NumberBounds): boolean {
  return Object.values(bounds).some((bound) => bound !== undefined);
}

/** Numbers within bounds, written without exponent; with `isInteger` without fraction too. Exact for integers. */
export function boundedNumber(bounds: NumberBounds, isInteger: boolean): Node {
  const lower = tighter(bounds.minimum, bounds.exclusiveMinimum, (a, b) => a > b);
  const upper = tighter(bounds.maximum, bounds.exclusiveMaximum, (a, b) => a < b);
  if (lower !== undefined && upper !== undefined) {
    if (lower.value > upper.value) return nothing;
    if (lower.value === upper.value && (lower.isStrict || upper.isStrict)) return nothing;
  }
  const parts: Node[] = [];
  const upperIsNegative = upper !== undefined && (upper.value < 0 || (upper.value === 0 && upper.isStrict));
  const lowerIsPositive = lower !== undefined && (lower.value > 0 || (lower.value === 0 && lower.isStrict));
  if (!upperIsNegative) {
    const least = lower !== undefined && lower.value >= 0 ? lower : { value: 0, isStrict: false };
    parts.push(between(least, upper, isInteger));
  }
  if (!lowerIsPositive) {
    const least =
      upper !== undefined && upper.value <= 0
        ? { value: -upper.value, isStrict: upper.isStrict }
        : { value: 0, isStrict: true };
    const most = lower === undefined ? undefined : { value: -lower.value, isStrict: lower.isStrict };
    parts.push(
      sequence(text("-"), between(least.value === 0 ? { value: 0, isStrict: true } : least, most, isInteger)),
    );
  }
  return choice(...parts);
}

interface Bound {
  readonly value: number;
  readonly isStrict: boolean;
}

function tighter(
  inclusive: number | undefined,
  exclusive: number | undefined,
  isTighter: (a: number, b: number) => boolean,
): Bound | undefined {
  if (
    exclusive !== undefined &&
    (inclusive === undefined || exclusive === inclusive || isTighter(exclusive, inclusive))
  )
    return { value: exclusive, isStrict: true };
  return inclusive === undefined ? undefined : { value: inclusive, isStrict: false };
}

/** Numbers of at least 0 without a sign. */
function between(lower: Bound, upper: Bound | undefined, isInteger: boolean): Node {
  const least = decimalOf(lower.value);
  const most = upper === undefined ? undefined : decimalOf(upper.value);
  const integerDigits = Math.max(maxIntegerDigits, least.integer.length + 1, most?.integer.length ?? 0);
  const boundDigits = Math.max(least.integer.length, most?.integer.length ?? 0);
  const boundFraction = Math.max(least.fraction.length, most?.fraction.length ?? 0);
  const fractionDigits = isInteger ? 0 : Math.max(boundFraction, exactDigits - boundDigits, 0);
  const integer = choice(text("0"), sequence(nonZeroDigits, digits(0, integerDigits - 1)));
  const fraction = fractionDigits === 0 ? empty : optional(sequence(text("."), digits(1, fractionDigits)));
  const conditions = [sequence(integer, fraction)];
  if (lower.value > 0 || lower.isStrict) conditions.push(atLeast(least, lower.isStrict));
  if (most !== undefined) conditions.push(atMost(most, upper!.isStrict));
  return all(...conditions);
}

const anyDigits = digits(0, Infinity);
const anyFraction = optional(sequence(text("."), digits(1, Infinity)));

function atLeast({ integer, fraction }: Decimal, isStrict: boolean): Node {
  const longer = sequence(nonZeroDigits, digits(integer.length, Infinity));
  const same = isStrict || fraction !== "" ? fractionAbove(fraction, isStrict) : anyFraction;
  return choice(sequence(choice(longer, above(integer)), anyFraction), sequence(text(integer), same));
}

/** Equally long digit strings that are greater. */
function above(value: string): Node {
  if (value === "") return nothing;
  const first = Number(value[0]);
  return choice(
    sequence(digitRange(first + 1, 9), digits(value.length - 1, value.length - 1)),
    sequence(text(value[0]!), above(value.slice(1))),
  );
}

/** Equally long digit strings that are less. */
function below(value: string, isFirst = true): Node {
  if (value === "") return nothing;
  const first = Number(value[0]);
  const least = isFirst && value.length > 1 ? 1 : 0;
  return choice(
    sequence(digitRange(least, first - 1), digits(value.length - 1, value.length - 1)),
    sequence(text(value[0]!), below(value.slice(1), false)),
  );
}

function fractionAbove(value: string, isStrict: boolean): Node {
  const rest = (left: string): Node => {
    if (left === "") return isStrict ? sequence(anyDigits, nonZeroDigits, anyDigits) : anyDigits;
    const first = Number(left[0]);
    return choice(
      sequence(digitRange(first + 1, 9), anyDigits),
      sequence(text(left[0]!), rest(left.slice(1))),
    );
  };
  return sequence(text("."), rest(value));
}

function atMost({ integer, fraction }: Decimal, isStrict: boolean): Node {
  const shorter =
    integer.length > 1 ? choice(text("0"), sequence(nonZeroDigits, digits(0, integer.length - 2))) : nothing;
  const less = sequence(choice(shorter, below(integer)), anyFraction);
  const rest = (left: string): Node => {
    if (left === "") return isStrict ? nothing : repeat(text("0"), 0, Infinity);
    const first = Number(left[0]);
    const stop = left.length > 1 || !isStrict ? empty : nothing;
    return choice(
      sequence(digitRange(0, first - 1), anyDigits),
      sequence(text(left[0]!), choice(stop, rest(left.slice(1)))),
    );
  };
  const equal =
    fraction === ""
      ? isStrict
        ? nothing
        : sequence(text(integer), optional(sequence(text("."), repeat(text("0"), 1, Infinity))))
      : sequence(text(integer), optional(sequence(text("."), rest(fraction))));
  return choice(less, equal);
}
