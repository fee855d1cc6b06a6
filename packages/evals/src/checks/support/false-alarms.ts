import { Random } from "@octavo/statistics";
import type { CheckResult } from "../check.js";
import type { Observation } from "../observation.js";

/** What a check says where nothing differs. */
export interface FalseAlarms {
  readonly runs: number;
  readonly failed: number;
  readonly passed: number;
  /** Runs in which the published rule of thumb tripped. */
  readonly ruleTripped: number;
}

/** Observations of one condition, laid out as if they were of both: whatever a check then finds is chance. */
export type Placebo = (observations: readonly Observation[], random: Random) => readonly Observation[];

/** An A/A run on what was observed: the same traffic is dealt into both conditions anew each time, and judged. */
export function countFalseAlarms(
  judge: (observations: readonly Observation[]) => CheckResult,
  placebo: Placebo,
  observations: readonly Observation[],
  { runs, seed }: { readonly runs: number; readonly seed: number },
): FalseAlarms {
  const random = new Random(seed);
  const counts = { runs, failed: 0, passed: 0, ruleTripped: 0 };
  for (let run = 0; run < runs; run++) {
    const { verdict, ruleOfThumb } = judge(placebo(observations, random));
    if (verdict === "fail") counts.failed += 1;
    if (verdict === "pass") counts.passed += 1;
    if (ruleOfThumb.tripped) counts.ruleTripped += 1;
  }
  return counts;
}
