import {
  all,
  type AutomatonTable,
  choice,
  type Node,
  not,
  nothing,
  optional,
  repeat,
  sequence,
  text,
} from "../node.js";
import { decimalOf } from "./decimal.js";
import type { RuleBuilder } from "../rule-builder.js";
import { digits, exactDigits, type NumberBounds } from "./number-node.js";
import { schemaError } from "./schema-error.js";

/** Most states of the dividing automaton; more would make masks slow. */
const maxStates = 4098;
/** Multiples between bounds that are listed where dividing doubles is not exact. */
const maxListed = 2048;

export interface Divisor {
  readonly value: number;
  readonly path: string;
}

/**
 * Numbers that a divisor divides, or with `isNegated` does not, without exponent, by the arithmetic of decimals that the
 * specification has. Validators that divide doubles find that 0.07 is not a multiple of 0.01: where few fractions between bounds
 * are multiples, those that such validators refuse are left out.
 */
export function multipleNode(
  { value, path: at }: Divisor,
  bounds: NumberBounds,
  isNegated: boolean,
  rules: RuleBuilder,
): Node {
  if (!(value > 0) || !Number.isFinite(value)) throw schemaError(at, "must be a number above 0");
  const { integer, fraction } = decimalOf(value);
  const scaled = Number(integer + fraction);
  const numStates = scaled * (fraction.length + 2) + 1;
  const length = fraction.length;
  const isExact = Number.isInteger(value * 2 ** 20) && scaled <= 2 ** 53;
  const listed = isNegated || isExact ? undefined : listMultiples(value, bounds);
  if (listed !== undefined) return choice(...listed.map((item) => text(item)));
  if (numStates <= maxStates && length < exactDigits) {
    const written = sequence(
      optional(text("-")),
      choice(
        digits(1, exactDigits),
        length === 0 ? nothing : sequence(digits(1, exactDigits - length), text("."), digits(1, length)),
      ),
    );
    const multiple = dividing(scaled, length, rules);
    return all(written, isNegated ? not(multiple) : multiple);
  }
  throw schemaError(
    at,
    `is supported for integers up to 2048, for decimals such as 0.01 or 2.5 whose digits and places give an automaton of at most ` +
      `${maxStates} states, and for other numbers between a minimum and a maximum with at most ${maxListed} multiples between them, not for ${value}` +
      (isNegated ? " in not" : ""),
  );
}

/** Decimal numbers that are multiples of `divisor` once the decimal point is moved right by `places`. */
function dividing(divisor: number, places: number, rules: RuleBuilder): Node {
  const numStates = 1 + (places === 0 ? 1 : places + 2) * divisor;
  const key = `multiples of ${divisor} with ${places} places`;
  const table = rules.table(key, numStates, () => divisionTable(divisor, places, numStates));
  return sequence(optional(text("-")), { op: "automaton", table, state: 0 });
}

function divisionTable(divisor: number, places: number, numStates: number): AutomatonTable {
  // State 0: before the first digit; 1 + places' digits seen * divisor + remainder: place 0 before the point, then after it.
  const next = new Int32Array(numStates * 256).fill(-1);
  const accepts = new Uint8Array(numStates);
  const state = (place: number, remainder: number): number => 1 + place * divisor + remainder;
  const step = (from: number, remainder: number, place: number): void => {
    for (let value = 0; value < 10; value += 1)
      next[from * 256 + 0x30 + value] = state(place, (remainder * 10 + value) % divisor);
  };
  step(0, 0, 0);
  for (let remainder = 0; remainder < divisor; remainder += 1) {
    const whole = state(0, remainder);
    step(whole, remainder, 0);
    accepts[whole] = (remainder * 10 ** places) % divisor === 0 ? 1 : 0;
    if (places === 0) continue;
    // Place 1 + n: after the point and n digits.
    next[whole * 256 + 0x2e] = state(1, remainder);
    for (let seen = 0; seen <= places; seen += 1) {
      const from = state(1 + seen, remainder);
      if (seen < places) step(from, remainder, 2 + seen);
      accepts[from] = seen > 0 && (remainder * 10 ** (places - seen)) % divisor === 0 ? 1 : 0;
    }
  }
  return { next, accepts };
}

/** Multiples between the bounds as decimals; undefined where there are no bounds or too many multiples. */
function listMultiples(divisor: number, bounds: NumberBounds): string[] | undefined {
  const { minimum, exclusiveMinimum, maximum, exclusiveMaximum } = bounds;
  const least = Math.max(minimum ?? -Infinity, exclusiveMinimum ?? -Infinity);
  const most = Math.min(maximum ?? Infinity, exclusiveMaximum ?? Infinity);
  const [first, last] = [Math.ceil(least / divisor) - 1, Math.floor(most / divisor) + 1];
  if (!(last - first <= maxListed + 2) || !Number.isSafeInteger(first) || !Number.isSafeInteger(last))
    return undefined;
  const { integer, fraction } = decimalOf(divisor);
  const scaled = BigInt(integer + fraction);
  const result: string[] = [];
  for (let count = first; count <= last; count += 1) {
    const written = pointed(scaled * BigInt(count), fraction.length);
    const value = Number(written);
    const isWithin =
      value >= least && value <= most && value !== exclusiveMinimum && value !== exclusiveMaximum;
    if (isWithin && Number.isInteger(value / divisor)) result.push(written);
  }
  return result;
}

function pointed(value: bigint, places: number): string {
  const shown = (value < 0n ? -value : value).toString().padStart(places + 1, "0");
  const whole = shown.slice(0, shown.length - places);
  const rest = shown.slice(shown.length - places).replace(/0+$/, "");
  return `${value < 0n ? "-" : ""}${whole}${rest === "" ? "" : `.${rest}`}`;
}

/** Decimals that are not integers, with few enough digits that parsing does not round them to one. */
export const fractional: Node = sequence(
  optional(text("-")),
  digits(1, 8),
  text("."),
  repeat(digits(1, 1), 0, 5),
  choice(...Array.from("123456789", (digit) => text(digit))),
);
