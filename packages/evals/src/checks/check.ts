import type { Chart } from "@octavo/report";

export type { Chart, HeatCell } from "@octavo/report";

/** What a check concludes; `inconclusive` where the data decide neither way. */
export type Verdict = "pass" | "fail" | "inconclusive";

/** What a check found out about its observations. */
export interface CheckResult {
  /** Its name. */
  readonly check: string;
  readonly verdict: Verdict;
  /** One sentence with the figures that decided. */
  readonly summary: string;
  /** The published rule of thumb, computed as published: shown, never decisive. */
  readonly ruleOfThumb: RuleOfThumb;
  /** What decides. Their p values are already adjusted for how many there are. */
  readonly hypotheses: readonly Hypothesis[];
  readonly sampleSize: SampleSize;
  /** What to change, most likely first; empty when it passed. */
  readonly advice: readonly Advice[];
  /** Cases whose outcome differed between conditions, worst first, at most 50. */
  readonly movedCases: readonly MovedCase[];
  readonly figures: readonly Chart[];
  /** What the observations lacked, such as spans without a cache hit ratio. */
  readonly notes: readonly string[];
  /** Evaluators that failed too often to draw a verdict from; undefined where there were none. */
  readonly brokenEvaluators?: readonly BrokenEvaluator[];
  /** Result of an A/A run on the observations; undefined if there was none. */
  readonly falseAlarms?: FalseAlarms;
}

/** What a check says where nothing differs. */
export interface FalseAlarms {
  readonly runs: number;
  readonly failed: number;
  readonly passed: number;
  /** Runs in which the published rule of thumb tripped. */
  readonly ruleTripped: number;
}

/** An evaluator of whose scores on one side of the comparison too many failed. */
export interface BrokenEvaluator {
  readonly evaluator: string;
  /** A condition; of replica-skew a replica. */
  readonly side: string;
  readonly failed: number;
  /** Scores that it was asked for there. */
  readonly of: number;
}

/** A rule with thresholds but no test: shown beside a verdict, never deciding one. */
export interface RuleOfThumb {
  /** The rule in words, with its thresholds. */
  readonly rule: string;
  readonly tripped: boolean;
  readonly columns: readonly string[];
  readonly rows: readonly (readonly (string | number | null)[])[];
}

/** One statement that a check tests, with what the test found. */
export interface Hypothesis {
  readonly name: string;
  /** The test or interval, such as `exact McNemar, non-inferiority` . */
  readonly method: string;
  readonly estimate: number | undefined;
  readonly interval: readonly [number, number] | undefined;
  /** Confidence level of `interval`, such as 0.95. */
  readonly confidence: number;
  /** Fixed before the run: what the estimate may be and still pass. */
  readonly margin: number | undefined;
  readonly unit: "share" | "ratio" | "ms" | "tokens" | "count" | "nats";
  readonly pValue: number | undefined;
  readonly verdict: Verdict;
}

/** How many cases decide, at a given difference and error rates. */
export interface SampleSize {
  readonly have: number;
  /** For the stated power at the margin; undefined where no formula holds. */
  readonly needed: number | undefined;
  readonly alpha: number;
  readonly power: number;
  /** For the same power if the truth is what was observed, on whichever side of the margin that is. */
  readonly neededAtObserved?: number;
  /** How `needed` was found. */
  readonly basis: string;
}

/** What an operator may change after a check failed. */
export interface Advice {
  /** A flag or setting, such as `--max-num-batched-tokens`. */
  readonly knob: string;
  readonly change: string;
  readonly because: string;
}

/** A case whose answer changed, by how much: the severest stand first in results. */
export interface MovedCase {
  readonly caseId: string;
  readonly what: string;
  readonly before: string | undefined;
  readonly after: string | undefined;
  readonly severity: number;
}
