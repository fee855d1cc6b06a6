import { mean } from "@octavo/statistics";

/** For tables: to so many decimals; null stays null. */
export function rounded<Value extends number | null>(value: Value, decimals = 3): Value {
  return (value === null ? null : Math.round(value * 10 ** decimals) / 10 ** decimals) as Value;
}

/** Null of nothing. */
export function roundedMean(values: readonly number[]): number | null {
  return values.length === 0 ? null : rounded(mean(values));
}
