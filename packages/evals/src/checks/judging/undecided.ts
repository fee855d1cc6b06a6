import type { Advice, SampleSize, Verdict } from "../check.js";

/** What to change after a verdict: the knobs after a failure, more requests where too few decided nothing. */
export function adviceAfter(
  verdict: Verdict,
  knobs: () => readonly Advice[],
  { have, needed }: SampleSize,
): readonly Advice[] {
  if (verdict === "fail") return knobs();
  if (verdict === "pass" || needed === undefined || have >= needed) return [];
  return [
    {
      knob: "requests",
      change: `collect ${needed} or more on each side`,
      because: `with ${have} the intervals reach past their margins`,
    },
  ];
}
