import { normalQuantile, randomEffects } from "@octavo/statistics";
import { points } from "../judging/loss-effect.js";
import type { AgainstFleet } from "./against-fleet.js";

const confidence = 0.95;

/**
 * How much replicas differ beyond the luck of the cases: the standard deviation between them (DerSimonian and Laird 1986).
 * Standard errors are read off the intervals. Unlike the largest spread it does not grow with the number of replicas.
 * Cases that are looked at as they come have no such errors.
 */
export function heterogeneityNotes(
  compared: readonly AgainstFleet[],
  evaluators: readonly string[],
): readonly string[] {
  if (compared.some((one) => one.compared.isSequential)) return [];
  return evaluators.flatMap((evaluator) => {
    const units = compared.flatMap((one) => {
      const interval = one.evaluator === evaluator ? one.compared.intervalAt(confidence) : undefined;
      if (interval === undefined) return [];
      const error = (interval[1] - interval[0]) / (2 * normalQuantile((1 + confidence) / 2));
      return error > 0 ? [{ effect: one.compared.loss, variance: error ** 2 }] : [];
    });
    if (units.length < 2) return [];
    const { betweenVariance, heterogeneity } = randomEffects(units);
    const p =
      heterogeneity.pValue === undefined ? "" : `; Cochran's Q, p = ${heterogeneity.pValue.toPrecision(2)}`;
    return [
      `${evaluator}: replicas differ by a standard deviation of ${points(Math.sqrt(betweenVariance))} points beyond chance${p}`,
    ];
  });
}
