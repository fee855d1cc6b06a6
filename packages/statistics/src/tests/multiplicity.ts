import { requireShare } from "../check.js";

function ascending(pValues: readonly number[]): number[] {
  for (const [index, value] of pValues.entries()) requireShare(`pValues[${index}]`, value);
  return pValues.map((_, index) => index).toSorted((a, b) => pValues[a]! - pValues[b]!);
}

/**
 * Holm's step-down adjustment (1979): adjusted p values in the order given. Comparing them with alpha keeps the chance of
 * any false rejection at alpha or less, however the tests depend on each other. Throws `invalid_option` outside [0, 1].
 */
export function holm(pValues: readonly number[]): number[] {
  const adjusted = pValues.map(() => 1);
  let running = 0;
  for (const [rank, index] of ascending(pValues).entries()) {
    running = Math.max(running, Math.min(1, pValues[index]! * (pValues.length - rank)));
    adjusted[index] = running;
  }
  return adjusted;
}
