import { setImmediate } from "node:timers/promises";
import { Random } from "@octavo/statistics";
import type { CheckResult, FalseAlarms } from "../check.js";
import type { Observation } from "../observation.js";

/** Observations of one condition, laid out as if they were of both: whatever a check then finds is chance. */
export type Placebo = (observations: readonly Observation[], random: Random) => readonly Observation[];

/** An A/A run on the observations: each run assigns the same traffic to both conditions at random and judges it. */
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

/** Observations over which all runs together may go, and runs at the least and at the most. */
const observationBudget = 400_000;
const [fewestRuns, mostRuns] = [20, 100];
/** Judging large runs takes long: after this the runs that were made have to do. */
const mostMs = 3_000;

/**
 * The A/A run that goes with a check: as many as the number of observations allows, yielding to the event loop in between.
 *
 * @throws what the signal was aborted with
 */
export async function alongsideFalseAlarms(
  judge: (observations: readonly Observation[]) => CheckResult,
  placebo: Placebo,
  observations: readonly Observation[],
  { seed, signal }: { readonly seed: number; readonly signal: AbortSignal },
): Promise<FalseAlarms> {
  const wanted = Math.floor(observationBudget / Math.max(1, observations.length));
  const runs = Math.min(mostRuns, Math.max(fewestRuns, wanted));
  const untilMs = performance.now() + mostMs;
  const sum = { runs: 0, failed: 0, passed: 0, ruleTripped: 0 };
  while (sum.runs < runs && performance.now() < untilMs) {
    const counted = countFalseAlarms(judge, placebo, observations, { runs: 1, seed: seed + sum.runs });
    sum.runs += counted.runs;
    sum.failed += counted.failed;
    sum.passed += counted.passed;
    sum.ruleTripped += counted.ruleTripped;
    await setImmediate();
    signal.throwIfAborted();
  }
  return sum;
}

/** A sentence for reports: how often conditions that differ by chance alone failed. */
export function falseAlarmNote({ runs, failed, ruleTripped }: FalseAlarms): string {
  return `A/A: dealt to both conditions by chance ${runs} times, what was observed failed ${failed} times; the published rule tripped ${ruleTripped} times.`;
}
