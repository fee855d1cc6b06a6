import { OctavoError } from "@octavo/protocol";
import { requireFinite } from "../check.js";
import type { Interval } from "../estimate.js";

export interface MarginVerdict {
  /**
   * - `pass`: the interval shows that the effect stays within the margin.
   * - `fail`: it shows that the effect is beyond it.
   * - `inconclusive`: it holds the margin.
   */
  readonly verdict: "pass" | "fail" | "inconclusive";
}

/**
 * Holds an interval of an effect against a margin that was fixed before the run. With `worse: "lower"` (scores) the effect
 * may be as low as `-margin`; with `worse: "higher"` (latencies, ratios) as high as `margin`. A two-sided interval of
 * confidence 1 - 2 alpha errs at most alpha of the time in either direction. Without an interval nothing is decided.
 */
export function nonInferiority({
  interval,
  margin,
  worse = "lower",
}: {
  readonly interval: Interval | undefined;
  readonly margin: number;
  readonly worse?: "lower" | "higher";
}): MarginVerdict {
  requireFinite("margin", margin);
  if (interval === undefined) return { verdict: "inconclusive" };
  const [low, high] = interval;
  if (!(low <= high)) {
    throw new OctavoError("invalid_option", `interval is [${low}, ${high}]; expected its lower end first.`, {
      param: "interval",
    });
  }
  // Bounds of the loss.
  const [least, most] = worse === "lower" ? [-high, -low] : [low, high];
  if (most < margin) return { verdict: "pass" };
  return { verdict: least > margin ? "fail" : "inconclusive" };
}
