import type { Random } from "@octavo/statistics";
import type { Verdict } from "../check.js";

export interface VerdictCounts {
  readonly pass: number;
  readonly fail: number;
  readonly inconclusive: number;
}

/** Runs of a simulation of error rates; as many again and more where OCTAVO_TEST_FULL asks for all (`npm run test:all -- --full`). */
export const manyRuns = process.env["OCTAVO_TEST_FULL"] === undefined ? 500 : 2000;

export function countVerdicts(runs: number, run: (seed: number) => Verdict): VerdictCounts {
  const counts = { pass: 0, fail: 0, inconclusive: 0 };
  for (let seed = 0; seed < runs; seed++) counts[run(seed)] += 1;
  return counts;
}

/**
 * More than so many of `runs` would be seen once in a thousand times if each came with probability `rate`: the nominal rate of
 * what is counted, which of failures on one side is alpha / 2.
 */
export function mostByChance(runs: number, rate: number): number {
  return Math.ceil(runs * rate + 3.1 * Math.sqrt(runs * rate * (1 - rate)));
}

/** 1 with the given probability. */
export function coin(random: Random, probability: number): number {
  return Number(random.uniform() < probability);
}
