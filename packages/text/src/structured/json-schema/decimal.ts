/** A number of at least 0 in decimal digits, without leading zeros (but "0") and trailing ones of the fraction. */
export interface Decimal {
  readonly integer: string;
  readonly fraction: string;
}

/** The shortest decimal that is the number; its sign is left out. */
export function decimalOf(value: number): Decimal {
  const [mantissa = "0", exponent = "0"] = String(Math.abs(value)).split("e");
  const [whole = "0", part = ""] = mantissa.split(".");
  const shift = Number(exponent);
  const digits = whole + part;
  const point = whole.length + shift;
  const padded =
    point > digits.length ? digits.padEnd(point, "0") : point < 0 ? "0".repeat(-point) + digits : digits;
  const place = Math.max(point, 0);
  return {
    integer: padded.slice(0, place).replace(/^0+(?=\d)/, "") || "0",
    fraction: padded.slice(place).replace(/0+$/, ""),
  };
}

/** Whether a divisor above 0 divides a number, both read as the decimals that they are written as: 0.01 divides 0.07. */
export function isMultipleOf(value: number, divisor: number): boolean {
  const [dividend, by] = [decimalOf(value), decimalOf(divisor)];
  const places = Math.max(dividend.fraction.length, by.fraction.length);
  const scaled = ({ integer, fraction }: Decimal): bigint => BigInt(integer + fraction.padEnd(places, "0"));
  return scaled(dividend) % scaled(by) === 0n;
}
