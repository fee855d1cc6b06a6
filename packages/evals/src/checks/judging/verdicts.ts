import { holm } from "@octavo/statistics";
import type { Hypothesis, Verdict } from "../check.js";

/** A hypothesis before the number of its siblings is known. */
export interface TestedEffect extends Omit<Hypothesis, "verdict"> {
  /** Of "the effect is within the margin", unadjusted: small where it is beyond. Undefined where it could not be tested. */
  readonly pValue: number | undefined;
  /** Whether its interval shows that it is within the margin. */
  readonly isWithin: boolean;
}

/**
 * Failing needs only one effect beyond its margin, so those p values are adjusted for how many there are (Holm). Passing
 * needs every effect within its margin: an intersection-union test, which needs no adjustment (Berger 1982).
 */
export function decide(effects: readonly TestedEffect[], alpha: number): readonly Hypothesis[] {
  const tested = effects.filter(({ pValue }) => pValue !== undefined);
  const adjusted = holm(tested.map(({ pValue }) => pValue ?? 1));
  return effects.map(({ isWithin, ...effect }) => {
    const index = tested.findIndex(({ name }) => name === effect.name);
    const pValue = index < 0 ? undefined : adjusted[index];
    const verdict: Verdict =
      pValue !== undefined && pValue <= alpha ? "fail" : isWithin ? "pass" : "inconclusive";
    return { ...effect, pValue, verdict };
  });
}

/** Fails where one fails, passes where all pass. Nothing that could be judged is inconclusive. */
export function overallVerdict(hypotheses: readonly Hypothesis[]): Verdict {
  if (hypotheses.some(({ verdict }) => verdict === "fail")) return "fail";
  const passed = hypotheses.length > 0 && hypotheses.every(({ verdict }) => verdict === "pass");
  return passed ? "pass" : "inconclusive";
}
