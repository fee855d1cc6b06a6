import { holm } from "@octavo/statistics";
import type { Hypothesis, Verdict } from "../check.js";

/** A hypothesis before the number of its siblings is known. */
export interface TestedEffect extends Omit<Hypothesis, "verdict"> {
  /** Unadjusted p-value of "the effect is within the margin": small if it is beyond. Undefined if it could not be tested. */
  readonly pValue: number | undefined;
  /** Whether its interval shows that it is within the margin. */
  readonly isWithin: boolean;
}

/** The margin is fixed before the run; the interval has confidence 1 - alpha. */
export interface EffectLimits {
  readonly margin: number;
  readonly alpha: number;
}

type Measured = Pick<TestedEffect, "name" | "method" | "estimate" | "interval" | "pValue"> &
  Partial<Pick<TestedEffect, "unit" | "isWithin">>;

/** An effect against its margin. Default: a share, within the margin where the interval's upper end is. */
export function marginEffect(measured: Measured, { margin, alpha }: EffectLimits): TestedEffect {
  const { interval } = measured;
  const isWithin = interval !== undefined && interval[1] <= margin;
  return { unit: "share", isWithin, ...measured, confidence: 1 - alpha, margin };
}

/** An effect of which nothing was seen. */
export function unseenEffect(
  name: string,
  limits: EffectLimits,
  unit: TestedEffect["unit"] = "share",
  method = "none: nothing to compare",
): TestedEffect {
  const nothing = { estimate: undefined, interval: undefined, pValue: undefined, isWithin: false };
  return marginEffect({ name, method, unit, ...nothing }, limits);
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

/**
 * Fails where one fails, passes where all pass and the observations are complete; inconclusive otherwise, also without any
 * hypothesis.
 */
export function overallVerdict(hypotheses: readonly Hypothesis[], isComplete = true): Verdict {
  if (hypotheses.some(({ verdict }) => verdict === "fail")) return "fail";
  const passed = hypotheses.length > 0 && hypotheses.every(({ verdict }) => verdict === "pass");
  return passed && isComplete ? "pass" : "inconclusive";
}

/** The one with the greatest estimate for its margin. */
export function nearestToMargin(
  hypotheses: readonly Hypothesis[],
): (Hypothesis & { readonly estimate: number; readonly margin: number }) | undefined {
  return hypotheses
    .flatMap((one) => {
      const { estimate, margin } = one;
      return estimate === undefined || margin === undefined ? [] : [{ ...one, estimate, margin }];
    })
    .toSorted((a, b) => b.estimate / Math.max(1e-9, b.margin) - a.estimate / Math.max(1e-9, a.margin))[0];
}
